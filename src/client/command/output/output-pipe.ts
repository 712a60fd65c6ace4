import { ClientFailure } from '../../client-failure.ts'
import { bytesOf, type DownloadOutput } from './output-file.ts'

/** Standard output, for the next program in the pipeline. */
export class OutputPipe implements DownloadOutput {
  readonly name = 'standard output'
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  async *kept(): AsyncGenerator<Uint8Array, void> {
    // A pipe cannot be read back.
  }

  async truncate(bytes: number): Promise<void> {
    if (bytes === this.#bytes) return
    throw new ClientFailure(
      'incomplete',
      'the download cannot be resumed, and the bytes already written to the pipe cannot be taken back',
      {
        code: 'pipe-written',
      },
    )
  }

  async write(pieces: readonly Uint8Array[]): Promise<void> {
    for (const piece of pieces) await this.#put(piece)
    this.#bytes += bytesOf(pieces)
  }

  async sync(): Promise<void> {
    // What was written to the pipe belongs to its reader.
  }

  async finish(): Promise<void> {
    // It ends with the process.
  }

  /** A whole number of packets would look like all of them. */
  async fail(mark: Uint8Array): Promise<void> {
    if (this.#bytes > 0) await this.#put(mark)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The stream belongs to the process.
  }

  #put(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error == null ? resolve() : reject(error)))
    })
  }
}
