import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import type { S3Settings } from '../../../src/gateway/export/target/s3-target.ts'
import { Secret } from '../../../src/shared/base/secret.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'
import { tempFolder } from '../temp-folder.ts'

const PROGRAM = join(REPOSITORY_ROOT, '.tools', 's3')

/** Skip reason for tests, or false. */
export const WITHOUT_S3 = skipWithout(
  existsSync(PROGRAM),
  'there is no .tools/s3; `node .ci/setup.mjs --test` brings it',
)

const BUCKET = 'exports'
const CREDENTIALS = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

/** A real S3 server on a free port, with an empty bucket. */
export class TempS3 implements AsyncDisposable {
  readonly settings: S3Settings
  /** The credentials, for a program without any in its settings. */
  readonly environment = {
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
  }
  readonly #parts: AsyncDisposableStack
  readonly #client: S3Client

  private constructor(endpoint: string, parts: AsyncDisposableStack) {
    const region = 'us-east-1'
    const { accessKeyId, secretAccessKey } = CREDENTIALS
    const credentials = { accessKeyId, secretAccessKey: new Secret(secretAccessKey) }
    this.settings = { bucket: BUCKET, prefix: 'captures/', endpoint, region, credentials }
    this.#parts = parts
    this.#client = new S3Client({ endpoint, region, credentials: CREDENTIALS, forcePathStyle: true })
  }

  static async create(): Promise<TempS3> {
    await using parts = new AsyncDisposableStack()
    const folder = parts.use(await tempFolder())
    await mkdir(join(folder.path, BUCKET))
    const keys = `${CREDENTIALS.accessKeyId},${CREDENTIALS.secretAccessKey}`
    const settings = ['--addr', '127.0.0.1:0', '--auth-key', keys, '--config', '/dev/null']
    const child = spawn(PROGRAM, ['serve', 's3', ...settings, folder.path], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    parts.defer(() => stop(child))
    return new TempS3(await addressOf(child), parts.move())
  }

  /** The keys of all objects. */
  async keys(): Promise<readonly string[]> {
    const { Contents = [] } = await this.#client.send(new ListObjectsV2Command({ Bucket: BUCKET }))
    return Contents.map(({ Key }) => Key ?? '').sort()
  }

  /** The keys of all unfinished multipart uploads. */
  async uploads(): Promise<readonly string[]> {
    try {
      const { Uploads = [] } = await this.#client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
      return Uploads.map(({ Key }) => Key ?? '').sort()
    } catch (error) {
      // The server's way of reporting that there are none.
      if (error instanceof Error && error.name === 'NoSuchUpload') return []
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy()
    await this.#parts.disposeAsync()
  }
}

/** It prints its address. */
async function addressOf({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error('its output is not read')
  const said: string[] = []
  for await (const line of createInterface({ input: stderr })) {
    said.push(line)
    const address = /server on \[(http:\/\/[\d.:]+)\//.exec(line)?.[1]
    if (address === undefined) continue
    stderr.resume()
    return address
  }
  throw new Error(`the S3 server did not start: ${said.join('; ')}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
