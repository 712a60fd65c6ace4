/** An export as earlier versions stored it: all its files in the record, and in each checkpoint. */
import type { Redis } from 'ioredis'

type Fields = Readonly<Record<string, unknown>>

/** Stores it in that form. REQUIRES: no worker runs. */
export async function storeInFormerForm(redis: Redis, id: string, keyPrefix = 'capfleet'): Promise<void> {
  const key = (kind: string) => `{${keyPrefix}}:export:${kind}:${id}`
  const { state = '', progress = 'null', base = 'null' } = await redis.hgetall(key('job'))
  const [made, kept] = [await filesAt(redis, key('made')), await filesAt(redis, key('kept'))]
  const files = ['complete', 'partial'].includes(state) ? kept : made
  const former = {
    checkpoint: withFiles(JSON.parse(progress), files),
    files: files.filter((file) => 'sha256' in file),
    base: baseWithFiles(JSON.parse(base), kept),
  }
  const fields = Object.entries(former).flatMap(([name, value]) => [name, JSON.stringify(value)])
  await redis
    .multi()
    .hset(key('job'), ...fields)
    .hdel(key('job'), 'progress', 'published')
    .del(key('made'), key('kept'))
    .exec()
}

async function filesAt(redis: Redis, key: string): Promise<readonly Fields[]> {
  const files = Object.entries(await redis.hgetall(key))
  return files.sort(([a], [b]) => Number(a) - Number(b)).map(([, text]) => JSON.parse(text) as Fields)
}

function baseWithFiles(
  base: { readonly checkpoint: Fields } | null,
  files: readonly Fields[],
): Fields | null {
  return base && { ...base, checkpoint: withFiles(base.checkpoint, files), files }
}

function withFiles(checkpoint: Fields | null, made: readonly Fields[]): Fields | null {
  if (checkpoint === null) return null
  const { openFile, fileCount: _count, writtenBytes: _bytes, ...rest } = checkpoint
  const files = made.map((file) => ({ path: '', pcapBytes: file.bytes, ...file }))
  return { ...rest, files: openFile === null ? files : [...files, openFile], isFileOpen: openFile !== null }
}
