/** Attacks with files to import that expand to far more than their size. */
import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import type { Attack, AttackScene, Attacks, Scale } from './attack.ts'
import { gzipBomb, zstdBomb } from './bomb.ts'

/** The store has little free space; no other user's packets may be removed for these files. */
export const importAttacks: Attacks = {
  'a-zstd-bomb-to-import': importing('bomb.pcap.zst', zstdBomb),
  'a-gzip-bomb-to-import': importing('bomb.pcap.gz', gzipBomb),
}

function importing(name: string, bomb: (scale: Scale) => Buffer): Attack {
  let bytes: Buffer = Buffer.alloc(0)
  return {
    targets: ['appliance'],
    stand: 'full-store',
    prepare: (scale) => {
      bytes = bomb(scale)
    },
    run: (scene) => importFile(scene, name, bytes),
  }
}

/** An import gets enough time to show its effect, even if the attack is short. */
const IMPORT_LIMIT_MS = 20_000
/** The recorder checks its space once per second, so removed captures are noticed after that time. */
const ROOM_CHECK_MS = 1_500

async function importFile({ stand, wire }: AttackScene, name: string, bytes: Buffer): Promise<void> {
  const file = join(dirname(stand.storePath), name)
  await writeFile(file, bytes)
  wire.countSent(bytes.length)
  const args = [join(REPOSITORY_ROOT, 'src/cli.ts'), 'import', file, '--store', stand.storePath]
  // A rejected import is an equally good result.
  await promisify(execFile)(process.execPath, args, { timeout: IMPORT_LIMIT_MS }).catch(() => undefined)
  await delay(ROOM_CHECK_MS)
  await rm(file)
}
