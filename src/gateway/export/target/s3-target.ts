/**
 * Exports in a bucket of S3, under `<prefix><exportId>/<name>`. Loads the SDK, which is large: import it only when
 * needed.
 */
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
  /** Default: that of AWS in the region. */
  readonly endpoint?: string | undefined
  readonly region: string
  /** Default: what the SDK finds in environment variables, a web identity or the role of the machine. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: Secret } | undefined
  /** Whether uploads carry the checksums that the SDK adds; servers from before 2025 reject them. Default: true. */
  readonly requestChecksums?: boolean | undefined
}

const CONNECT_LIMIT_MS = 10_000
/** S3 may take long to assemble the parts of a large file. */
const IDLE_LIMIT_MS = 120_000
/** Number of parts that are sent concurrently. All of them are in memory, plus one that is being read. */
const PARTS_AT_ONCE = 2
/** How often to check for a file that has just been sent. */
const LOOKS_MAX = 5
const LOOK_PAUSE_MS = 200
/** Attempts of one publish() when other attempts interfere. */
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
  readonly #hasChecksums: boolean
  readonly #client: S3Client

  constructor(name: string, settings: S3Settings) {
    const { bucket, prefix, endpoint, region, credentials, requestChecksums = true } = settings
    this.name = name
    this.#bucket = bucket
    this.#prefix = prefix
    this.#hasChecksums = requestChecksums
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
   * Uploads the file, and aborts all other uploads of it: killed attempts have left parts, which cost as much as files
   * do. Another attempt may abort this one in the same way, and not every server keeps the object if an upload is
   * aborted while it is being completed, so check for the file last.
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

  /** Whether S3 has exactly this file. */
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
      // Another attempt has published the same file meanwhile and aborted this one.
      if (await this.#isKept(file).catch(() => false)) return
      if (isFull(error)) await this.#abortUploads(this.#keyOf(file))
      throw error
    }
  }

  /**
   * Waits until S3 shows the file with its length. Not every server does so at once, or while another attempt replaces
   * it.
   */
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

  /** Aborts uploads of one key, or of all keys below it if it ends with a slash. */
  async #abortUploads(key: string): Promise<void> {
    for await (const { Key, UploadId } of this.#uploads(key)) {
      if (Key !== key && !key.endsWith('/')) continue
      const request = new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId })
      await this.#client.send(request).catch((error: unknown) => {
        // The upload has ended meanwhile.
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
        // Some servers report this if there are no uploads.
        if (isNamed(error, 'NoSuchUpload')) return
        throw error
      }
      yield* page.Uploads ?? []
    } while (page.IsTruncated === true)
  }

  /** Deletes one page of a list, which has at most as many keys as one request may delete. */
  async #delete(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true }
    const { Errors = [] } = await this.#client.send(
      new DeleteObjectsCommand({ Bucket: this.#bucket, Delete }),
    )
    const [first] = Errors
    if (first !== undefined) throw new Error(`${first.Code}: ${first.Message}`)
  }

  #adviceFor(error: unknown): string {
    // Servers from before 2025 do not know the checksums.
    if (this.#hasChecksums && isNamed(error, 'NotImplemented'))
      return 'set requestChecksums: false for the target if the server does not support checksums of requests'
    return 'check S3, or try again'
  }

  /** Fails with the errors of the contract. */
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
        `cannot use the bucket ${this.#bucket} ${said}; ${this.#adviceFor(error)}`,
      )
    }
  }
}

function isNotSeen(error: unknown): boolean {
  return error instanceof CapfleetError && error.code === 'export-target-unavailable'
}

const MIB = 1_048_576
/** S3 does not accept parts below 5 MiB, except for the last. */
const PART_BYTES_MIN = 8 * MIB
const PARTS_MAX = 10_000

/** The smallest part size that S3 allows for a file of this size, because parts are held in memory. */
export function partBytesOf(fileBytes: number): number {
  return Math.max(PART_BYTES_MIN, Math.ceil(fileBytes / PARTS_MAX / MIB) * MIB)
}

/**
 * The client for one upload. On its own, Upload sends parts that no signal aborts, and when told to stop it does not
 * wait until they, and what S3 has of them, are gone. Creating and ending a multipart upload is always waited for: one
 * created unnoticed would be left behind.
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
  // The advice that Node.js appends to its reason is an option of Node's own, which our programs are not given.
  if (certificateTrouble(error)?.whose === 'theirs')
    return `${message.split(';', 1)[0]} (set NODE_EXTRA_CA_CERTS to trust a private authority)`
  return message === '' ? String(code) : message
}
