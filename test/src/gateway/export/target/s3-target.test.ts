import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { createServer, type RequestListener, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { after, before, describe, test } from 'node:test'
import type {
  ExportTarget,
  FilePlace,
  FinishedFile,
} from '../../../../../src/gateway/export/target/export-target.ts'
import { partBytesOf, type S3Settings, S3Target } from '../../../../../src/gateway/export/target/s3-target.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { eventually } from '../../../../support/eventually.ts'
import {
  failsWith,
  keep,
  type TargetStage,
  testTargetContract,
} from '../../../../support/exports/export-target-contract.ts'
import { madeFile } from '../../../../support/exports/made-file.ts'
import { TempS3, WITHOUT_S3 } from '../../../../support/processes/temp-s3.ts'
import type { UploadingArguments } from '../../../../support/processes/uploading-program.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const MIB = 1_048_576
const PROGRAM = join(import.meta.dirname, '../../../../support/processes/uploading-program.ts')
/** For a long run; at least four parts. */
const UPLOAD_BYTES = Number(process.env.EXPORT_UPLOAD_BYTES ?? 17 * MIB)

describe('in a bucket', { skip: WITHOUT_S3 }, () => {
  const parts = new AsyncDisposableStack()
  let s3: TempS3
  let stage: TargetStage
  before(async () => {
    s3 = parts.use(await TempS3.create())
    const folder = parts.use(await tempFolder()).path
    stage = { target: new S3Target('bucket', s3.settings), folder }
  })
  after(() => parts.disposeAsync())

  testTargetContract(() => stage)

  test('the key of a file is its prefix, the export and the name', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, 10)
    await keep(target, file)
    assert.ok((await s3.keys()).includes(`captures/${file.exportId}/${file.name}`))
  })

  test('an upload that is killed three times is whole in the end, and leaves nothing', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, UPLOAD_BYTES)
    for (let kill = 1; kill <= 3; kill++)
      await killUpload(s3, { file, stopAfterBytes: (UPLOAD_BYTES * kill) / 4 })
    assert.equal((await s3.uploads()).length, 3)
    const told: number[] = []
    await target.publish(file, {
      signal: new AbortController().signal,
      onProgress: (bytes) => told.push(bytes),
    })
    assert.equal(await keptSha256(target, file), file.sha256)
    assert.deepEqual(await s3.uploads(), [])
    assert.equal(existsSync(file.path), false)
    assert.ok(told.length >= 4 && told.at(-1) === file.bytes)
    await target.remove(file.exportId)
  })

  test('of a server from before 2025, which refuses the checksums of the SDK: without them files of any length are kept', async () => {
    const { folder } = stage
    let refused = 0
    await using old = await fakeS3((req, res) => {
      const added = Object.keys(req.headers).some((name) =>
        /^x-amz-(checksum-|sdk-checksum|trailer)/.test(name),
      )
      if (added) {
        refused += 1
        req.resume()
        res.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>')
        return
      }
      const { method = 'GET', url = '/', headers } = req
      const onwards = request(`${s3.settings.endpoint}${url}`, { method, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(res)
      })
      req.pipe(onwards)
    })
    const settings = { ...s3.settings, endpoint: old.settings.endpoint }
    const file = await madeFile(folder, 10)
    await assert.rejects(
      keep(new S3Target('bucket', settings), file),
      /NotImplemented.*; set requestChecksums: false for the target if/,
    )
    assert.ok(refused > 0)
    const target = new S3Target('bucket', { ...settings, requestChecksums: false })
    for (const kept of [file, await madeFile(folder, 17 * MIB)]) {
      await keep(target, kept)
      assert.equal(await keptSha256(target, kept), kept.sha256)
    }
  })

  test('two uploads of the same file at the same time end with one whole file', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, 17 * MIB)
    const copy = { ...file, path: join(folder, 'copy') }
    await copyFile(file.path, copy.path)
    await Promise.all([keep(target, file), keep(target, copy)])
    // The server may still be replacing the file of one by the same of the other, and breaks off who reads it.
    let kept: string | undefined
    const isRead = async () => {
      kept = await keptSha256(target, file).catch(() => undefined)
      return kept !== undefined
    }
    await eventually(isRead, { message: 'the file can be read' })
    assert.equal(kept, file.sha256)
    assert.deepEqual(await s3.uploads(), [])
  })

  test('the upload of another file, whose name starts the same, continues', async () => {
    const { target, folder } = stage
    const longer = await madeFile(folder, 17 * MIB, { name: 'capture.pcap.gz' })
    const shorter = await madeFile(folder, 10, { exportId: longer.exportId, name: 'capture.pcap' })
    let meanwhile: Promise<void> | undefined
    await target.publish(longer, {
      signal: new AbortController().signal,
      onProgress: () => {
        meanwhile ??= keep(target, shorter)
      },
    })
    await meanwhile
    assert.equal(await keptSha256(target, longer), longer.sha256)
    assert.equal(await keptSha256(target, shorter), shorter.sha256)
  })

  test('a stopped upload leaves the file, and nothing in the bucket', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, 17 * MIB)
    const controller = new AbortController()
    const reason = new Error('cancelled')
    const publishing = target.publish(file, {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    })
    await assert.rejects(publishing, reason)
    assert.deepEqual(await s3.uploads(), [])
    await assert.rejects(target.open(file), failsWith('unknown-export'))
    assert.equal(existsSync(file.path), true)
  })

  test('what killed uploads have left of an export is removed with it', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, 17 * MIB)
    await killUpload(s3, { file, stopAfterBytes: 1 })
    assert.equal((await s3.uploads()).length, 1)
    await target.remove(file.exportId)
    assert.deepEqual(await s3.uploads(), [])
  })

  for (const [what, change] of [
    ['a bucket that is not there', { bucket: 'elsewhere' }],
    [
      'a wrong secret',
      { credentials: { accessKeyId: 'test-key', secretAccessKey: new Secret('wrong-secret') } },
    ],
    ['nobody at the endpoint', { endpoint: 'http://127.0.0.1:1' }],
  ] as const) {
    test(`${what} is a bad setting, and later an unavailable target`, async () => {
      const target = new S3Target('bucket', { ...s3.settings, ...change })
      const file = await madeFile(stage.folder, 10)
      await assert.rejects(target.check(), failsWith('bad-config'))
      const doings = [target.check(), keep(target, file), target.remove(file.exportId)]
      for (const said of await Promise.allSettled(doings)) {
        assert.equal(said.status, 'rejected')
        assert.match(said.reason.message, 'bucket' in change ? /elsewhere/ : /bucket exports/)
        assert.doesNotMatch(said.reason.message, /secret-|wrong-secret/)
      }
      await assert.rejects(keep(target, file), failsWith('export-target-unavailable'))
      assert.equal(existsSync(file.path), true)
    })
  }
})

test('parts are as S3 takes them, and not larger than they must be', () => {
  for (const bytes of [
    0,
    1,
    5 * MIB,
    8 * MIB,
    80_000 * MIB,
    80_000 * MIB + 1,
    2 ** 40,
    5 * 2 ** 40,
    48 * 2 ** 40,
  ]) {
    const part = partBytesOf(bytes)
    assert.ok(part >= 5 * MIB && part <= 5 * 1024 * MIB, `${bytes}`)
    assert.ok(Math.ceil(bytes / part) <= 10_000, `${bytes}`)
    assert.ok(part === 8 * MIB || bytes / (part - MIB) > 10_000, `${bytes}`)
  }
})

for (const [said, code] of [
  [{ status: 507, name: 'InsufficientStorage' }, 'export-store-full'],
  [{ status: 403, name: 'QuotaExceeded' }, 'export-store-full'],
  [{ status: 400, name: 'EntityTooLarge' }, 'export-store-full'],
  [{ status: 403, name: 'AccessDenied' }, 'export-target-unavailable'],
] as const) {
  test(`${said.name} of S3 becomes ${code}`, async () => {
    await using folder = await tempFolder()
    await using server = await fakeS3((req, res) => {
      req.resume()
      if (req.method === 'HEAD') res.writeHead(404).end()
      else if (req.method === 'GET') res.writeHead(200).end('<ListMultipartUploadsResult/>')
      else
        res.writeHead(said.status).end(`<Error><Code>${said.name}</Code><Message>so it is</Message></Error>`)
    })
    const file = await madeFile(folder.path, 10)
    const target = new S3Target('bucket', server.settings)
    await assert.rejects(keep(target, file), { ...failsWith(code), message: /bucket exports .*so it is/ })
    assert.equal(existsSync(file.path), true)
  })
}

test('an object that is shorter than the file is not taken for kept', async () => {
  await using folder = await tempFolder()
  let isSent = false
  await using server = await fakeS3((req, res) => {
    req.resume()
    isSent ||= req.method === 'PUT'
    if (req.method !== 'HEAD') res.writeHead(200, { ETag: '"x"' }).end()
    else if (!isSent) res.writeHead(404).end()
    else res.writeHead(200, { 'Content-Length': 9, 'x-amz-meta-sha256': file.sha256 }).end()
  })
  const file = await madeFile(folder.path, 10)
  await assert.rejects(
    keep(new S3Target('bucket', server.settings), file),
    failsWith('export-target-unavailable'),
  )
  assert.ok(isSent && existsSync(file.path))
})

test('a client that stops reading ends the request', async () => {
  const closed = Promise.withResolvers<void>()
  await using server = await fakeS3((_req, res) => {
    res.writeHead(200, { 'Content-Length': 100 * MIB })
    res.write(Buffer.alloc(MIB))
    res.on('close', () => closed.resolve())
  })
  const place = { exportId: crypto.randomUUID(), name: 'capture.pcap' }
  const stream = await new S3Target('bucket', server.settings).open(place)
  await once(stream, 'readable')
  stream.destroy()
  await closed.promise
})

test('a list of uploads in pages is read to its end', async () => {
  const exportId = crypto.randomUUID()
  const aborted: string[] = []
  await using server = await fakeS3((req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://s3')
    const page = Number(searchParams.get('upload-id-marker') ?? 0)
    if (req.method === 'DELETE') {
      aborted.push(searchParams.get('uploadId') ?? '')
      res.writeHead(204).end()
    } else if (!searchParams.has('uploads')) res.writeHead(200).end('<ListBucketResult/>')
    else {
      const key = `captures/${exportId}/capture.pcap`
      const upload = `<Upload><Key>${key}</Key><UploadId>${page + 1}</UploadId></Upload>`
      const next = `<NextKeyMarker>${key}</NextKeyMarker><NextUploadIdMarker>${page + 1}</NextUploadIdMarker>`
      const more = page < 2 ? `<IsTruncated>true</IsTruncated>${next}` : '<IsTruncated>false</IsTruncated>'
      res.writeHead(200).end(`<ListMultipartUploadsResult>${more}${upload}</ListMultipartUploadsResult>`)
    }
  })
  await new S3Target('bucket', server.settings).remove(exportId)
  assert.deepEqual(aborted, ['1', '2', '3'])
})

/** The answer of a server that is not S3. */
async function fakeS3(answer: RequestListener): Promise<AsyncDisposable & { readonly settings: S3Settings }> {
  const server = createServer(answer)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    settings: {
      bucket: 'exports',
      prefix: 'captures/',
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test-key', secretAccessKey: new Secret('test-secret') },
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Kills a process that uploads the file once this many bytes are there. */
async function killUpload(s3: TempS3, args: Omit<UploadingArguments, 'settings'>): Promise<void> {
  const settings = { ...s3.settings, credentials: undefined }
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify({ ...args, settings })], {
    env: { ...process.env, ...s3.environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(child.stdout, 'data')
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.equal(String(said), 'stopped\n')
}

async function keptSha256(target: ExportTarget, place: FilePlace | FinishedFile): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(await target.open(place), hash)
  return hash.digest('hex')
}
