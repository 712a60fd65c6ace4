/**
 * A program that keeps the file of its argument in S3, and stops after uploading a given number of its bytes, to be
 * killed there.
 */
import type { FinishedFile } from '../../../src/gateway/export/target/export-target.ts'
import { type S3Settings, S3Target } from '../../../src/gateway/export/target/s3-target.ts'

export interface UploadingArguments {
  /** Credentials are in the environment. */
  readonly settings: S3Settings
  readonly file: FinishedFile
  readonly stopAfterBytes: number
}

const { settings, file, stopAfterBytes } = JSON.parse(process.argv[2] ?? '') as UploadingArguments
await new S3Target('bucket', settings).publish(file, {
  signal: new AbortController().signal,
  onProgress: (bytes) => {
    if (bytes < stopAfterBytes) return
    process.stdout.write('stopped\n')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
})
process.stdout.write('kept\n')
