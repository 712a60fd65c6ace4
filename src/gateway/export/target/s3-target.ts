/** Exports in a bucket of S3, under `<prefix><exportId>/<name>`. Loads the SDK, which is large: import it when it is needed. */
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  type MultipartUpload,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { certificateTrouble } from '../../../shared/base/certificate-trouble.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Secret } from '../../../shared/base/secret.ts'
import type { ByteRange, ExportTarget, FilePlace, FinishedFile, PublishOptions } from './export-target.ts'
import { assertExportId, assertPlace, fileIsLost, isStillThere } from './finished-file.ts'

export interface S3Settings {
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
  /** Default: the one of AWS in that region. */
  readonly endpoint?: string | undefined
  readonly region: string
  /** Default: what the SDK finds: its variables of the environment, a web identity, the role of the machine. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: Secret } | undefined
  /** Whether uploads have the checksums that the SDK adds; servers from before 2025 refuse them. Default: they have. */
  readonly requestChecksums?: boolean | undefined
}

const CONNECT_LIMIT_MS = 10_000
/** S3 may take long to put the parts of a large file together. */
const IDLE_LIMIT_MS = 120_000
/** How many parts are sent at once. All of them are in memory, and one more that is read. */
const PARTS_AT_ONCE = 2
/** How often to look for a file that has just been sent. */
const LOOKS_MAX = 5
const LOOK_PAUSE_MS = 200
/** Of one publish(), where other attempts get in its way. */
const ATTEMPTS_MAX = 4
const ATTEMPT_PAUSE_MS = 1_000
const READ_PIECE_BYTES = 1_048_576
const KEEP_CONNECTIONS = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY }

function revealed({ accessKeyId, secretAccessKey }: NonNullable<S3Settings['credentials']>) {
  return { accessKeyId, secretAccessKey: secretAccessKey.reveal() }
}

export class S3Target implements ExportTarget {
  readonly name: string
  readonly workFolder = undefined
  readonly #bucket: string
  readonly #prefix: string
  readonly #client: S3Client

  constructor(name: string, settings: S3Settings) {
    const { bucket, prefix, endpoint, region, credentials, requestChecksums = true } = settings
    this.name = name
    this.#bucket = bucket
    this.#prefix = prefix
    this.#client = new S3Client({
      region,
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials: revealed(credentials) }),
      forcePathStyle: true,
      // A client compares the SHA-256. The SDK's own checksums would be computed in JavaScript.
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestChecksumCalculation: requestChecksums ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: CONNECT_LIMIT_MS,
        socketTimeout: IDLE_LIMIT_MS,
        httpAgent: KEEP_CONNECTIONS,
        httpsAgent: KEEP_CONNECTIONS,
      },
    })
  }

  async check(): Promise<void> {
    try {
      await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }))
    } catch (cause) {
      throw new CapfleetError(
        'bad-config',
        `the target ${this.name} cannot be used: S3 answered ${wordsOf(cause)} for the bucket ${this.#bucket}; check endpoint, region, bucket, accessKeyId and secretAccessKey`,
      )
    }
  }

  async publish(file: FinishedFile, options: PublishOptions): Promise<void> {
    assertPlace(file)
    const { signal, onProgress } = options
    signal.throwIfAborted()
    await this.#attempt(signal, async () => {
      await this.#keep(file, options)
      await rm(file.path, { force: true })
    })
    onProgress?.(file.bytes)
  }

  async open(place: FilePlace, range?: ByteRange): Promise<Readable> {
    assertPlace(place)
    const request = new GetObjectCommand({
      Bucket: this.#bucket,
      Key: this.#keyOf(place),
      ...(range === undefined ? {} : { Range: `bytes=${range.first}-${range.last}` }),
    })
    return await this.#attempt(undefined, async () => {
      try {
        const { Body } = await this.#client.send(request)
        return Body as Readable
      } catch (error) {
        if (!isNamed(error, 'NoSuchKey')) throw error
        throw new CapfleetError('unknown-export', `the export ${place.exportId} has no file ${place.name}`)
      }
    })
  }

  async removeFile(place: FilePlace): Promise<void> {
    assertPlace(place)
    await this.#attempt(undefined, () => this.#delete([this.#keyOf(place)]))
  }

  async remove(exportId: string): Promise<void> {
    assertExportId(exportId)
    const prefix = `${this.#prefix}${exportId}/`
    await this.#attempt(undefined, async () => {
      await this.#abortUploads(prefix)
      const pages = paginateListObjectsV2({ client: this.#client }, { Bucket: this.#bucket, Prefix: prefix })
      for await (const { Contents = [] } of pages) await this.#delete(Contents.map(({ Key }) => Key ?? ''))
    })
  }

  async freeBytes(): Promise<undefined> {}

  #keyOf({ exportId, name }: FilePlace): string {
    return `${this.#prefix}${exportId}/${name}`
  }

  /**
   * Uploads the file, and ends all other uploads of it: attempts that were killed have left parts, which cost as much
   * as files do. Another attempt may end this one in the same way, and not every server keeps what is there when an
   * upload ends while it is being completed: so the file is looked for last.
   */
  async #keep(file: FinishedFile, options: PublishOptions): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        if (!(await this.#isKept(file))) await this.#upload(file, options)
        await this.#abortUploads(this.#keyOf(file))
        await this.#see(file, options.signal)
        return
      } catch (error) {
        options.signal.throwIfAborted()
        const mayBeAnother = isNamed(error, 'NoSuchUpload') || isNotSeen(error)
        if (!mayBeAnother || attempt === ATTEMPTS_MAX) throw error
        await delay(Math.random() * ATTEMPT_PAUSE_MS, undefined, { signal: options.signal })
      }
    }
  }

  /** Whether S3 has this very file. */
  async #isKept(file: FinishedFile): Promise<boolean> {
    const found = await this.#find(file)
    return found?.ContentLength === file.bytes && found.Metadata?.sha256 === file.sha256
  }

  async #find(place: FilePlace): Promise<HeadObjectCommandOutput | undefined> {
    try {
      const request = new HeadObjectCommand({ Bucket: this.#bucket, Key: this.#keyOf(place) })
      return await this.#client.send(request)
    } catch (error) {
      if (isNamed(error, 'NotFound')) return undefined
      throw error
    }
  }

  async #upload(file: FinishedFile, { signal, onProgress }: PublishOptions): Promise<void> {
    if (!(await isStillThere(file))) throw fileIsLost(file)
    const upload = new Upload({
      client: endingWith(this.#client, signal),
      params: {
        Bucket: this.#bucket,
        Key: this.#keyOf(file),
        Body: createReadStream(file.path, { highWaterMark: READ_PIECE_BYTES }),
        Metadata: { sha256: file.sha256 },
      },
      partSize: partBytesOf(file.bytes),
      queueSize: PARTS_AT_ONCE,
    })
    upload.on('httpUploadProgress', ({ loaded = 0 }) => onProgress?.(loaded))
    try {
      await upload.done()
    } catch (error) {
      signal.throwIfAborted()
      // Another attempt that has kept the same file meanwhile has ended this one.
      if (await this.#isKept(file).catch(() => false)) return
      if (isFull(error)) await this.#abortUploads(this.#keyOf(file))
      throw error
    }
  }

  /** Waits until S3 shows the file with its length: not every server does at once, or while another attempt replaces it. */
  async #see(file: FinishedFile, signal: AbortSignal): Promise<void> {
    let found: HeadObjectCommandOutput | undefined
    for (let look = 0; look < LOOKS_MAX; look++) {
      if (look > 0) await delay(LOOK_PAUSE_MS, undefined, { signal })
      found = await this.#find(file)
      if (found?.ContentLength === file.bytes) return
    }
    throw new CapfleetError(
      'export-target-unavailable',
      `the bucket ${this.#bucket} has ${found?.ContentLength ?? 'no'} bytes of ${file.name} instead of ${file.bytes}; check whether another program writes there`,
    )
  }

  /** Of one key; of all keys below it when it ends with a slash. */
  async #abortUploads(key: string): Promise<void> {
    for await (const { Key, UploadId } of this.#uploads(key)) {
      if (Key !== key && !key.endsWith('/')) continue
      const request = new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId })
      await this.#client.send(request).catch((error: unknown) => {
        // It has ended meanwhile.
        if (!isNamed(error, 'NoSuchUpload')) throw error
      })
    }
  }

  async *#uploads(prefix: string): AsyncGenerator<MultipartUpload, void> {
    let page: ListMultipartUploadsCommandOutput | undefined
    do {
      const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page ?? {}
      const place = { Bucket: this.#bucket, Prefix: prefix }
      try {
        const request = new ListMultipartUploadsCommand({ ...place, KeyMarker, UploadIdMarker })
        page = await this.#client.send(request)
      } catch (error) {
        // So some servers say that there is none.
        if (isNamed(error, 'NoSuchUpload')) return
        throw error
      }
      yield* page.Uploads ?? []
    } while (page.IsTruncated === true)
  }

  /** A page of a list, which has at most as many keys as one request may delete. */
  async #delete(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true }
    const { Errors = [] } = await this.#client.send(
      new DeleteObjectsCommand({ Bucket: this.#bucket, Delete }),
    )
    const [first] = Errors
    if (first !== undefined) throw new Error(`${first.Code}: ${first.Message}`)
  }

  /** Fails with what the contract names. */
  async #attempt<Result>(signal: AbortSignal | undefined, action: () => Promise<Result>): Promise<Result> {
    try {
      return await action()
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof CapfleetError) throw error
      const said = `of the target ${this.name}: ${wordsOf(error)}`
      if (isFull(error))
        throw new CapfleetError(
          'export-store-full',
          `there is no space left in the bucket ${this.#bucket} ${said}; remove exports, or raise its quota`,
        )
      throw new CapfleetError(
        'export-target-unavailable',
        `cannot use the bucket ${this.#bucket} ${said}; check S3, or try again`,
      )
    }
  }
}

function isNotSeen(error: unknown): boolean {
  return error instanceof CapfleetError && error.code === 'export-target-unavailable'
}

const MIB = 1_048_576
/** S3 takes no smaller ones than 5 MiB, but for the last. */
const PART_BYTES_MIN = 8 * MIB
const PARTS_MAX = 10_000

/** As small as S3 allows for a file of this size: parts are held in memory. */
export function partBytesOf(fileBytes: number): number {
  return Math.max(PART_BYTES_MIN, Math.ceil(fileBytes / PARTS_MAX / MIB) * MIB)
}

/**
 * The client for one upload. Left to itself, Upload sends parts that no signal ends, and when it is told to stop it
 * does not wait until they and what S3 has of them have gone. What begins and ends a multipart upload is always
 * waited for: a begin that nobody hears of would leave one behind.
 */
function endingWith(client: S3Client, signal: AbortSignal): S3Client {
  const send = (command: Parameters<S3Client['send']>[0]) => {
    const isContent = command instanceof UploadPartCommand || command instanceof PutObjectCommand
    return client.send(command, isContent ? { abortSignal: signal } : {})
  }
  return Object.assign(Object.create(client), { send })
}

const FULL_NAMES: ReadonlySet<string> = new Set(['EntityTooLarge', 'QuotaExceeded', 'XMinioStorageFull'])

function isFull(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false
  return FULL_NAMES.has(error.name) || error.$metadata.httpStatusCode === 507
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name
}

/** "NoSuchBucket (404): The specified bucket does not exist", "ECONNREFUSED". */
function wordsOf(error: unknown): string {
  if (error instanceof S3ServiceException) {
    const status = error.$metadata.httpStatusCode
    return `${error.name} (${status})${error.message === 'UnknownError' ? '' : `: ${error.message}`}`
  }
  const { code, message } = error as NodeJS.ErrnoException
  // What Node.js advises behind its reason is an option of its own, which a program of ours does not get.
  if (certificateTrouble(error)?.whose === 'theirs')
    return `${message.split(';', 1)[0]} (set NODE_EXTRA_CA_CERTS to trust a private authority)`
  return message === '' ? String(code) : message
}
