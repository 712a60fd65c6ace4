/** Attacks by files that somebody is asked to import: what they hold is far more than they are. */
import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import type { Attack, AttackScene, Attacks, Scale } from './attack.ts'
import { gzipBomb, zstdBomb } from './bomb.ts'

/** The store has room for little more than what it holds: nobody's packets may go for these. */
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

/** An import has time to show what it does, also when the attack is a short one. */
const IMPORT_LIMIT_MS = 20_000
/** The recorder looks after its room once a second: what it throws away is missed after that. */
const ROOM_CHECK_MS = 1_500

async function importFile({ stand, wire }: AttackScene, name: string, bytes: Buffer): Promise<void> {
  const file = join(dirname(stand.storePath), name)
  await writeFile(file, bytes)
  wire.countSent(bytes.length)
  const args = [join(REPOSITORY_ROOT, 'src/cli.ts'), 'import', file, '--store', stand.storePath]
  // That it is refused is as good an end as any.
  await promisify(execFile)(process.execPath, args, { timeout: IMPORT_LIMIT_MS }).catch(() => undefined)
  await delay(ROOM_CHECK_MS)
  await rm(file)
}
