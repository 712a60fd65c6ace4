/**
 * The compiled engine as it comes out of native/binding: loads the binary and says what it exports.
 * Only addon.ts uses this; it checks every argument, the binary trusts them.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CapfleetError, type ErrorCode } from '../src/base/error.ts'
import type { DownloadTotals, ImportOptions, ImportProgress, ImportResult } from './addon.ts'

export interface NativeOptions {
  readonly streams: readonly (readonly string[])[]
  readonly beginNs: bigint
  readonly endNs: bigint
  readonly filter: Uint8Array | undefined
  readonly sliceBytes: number
  readonly tsMaxNs: bigint | undefined
  readonly toMicroseconds: boolean
  readonly codec: number
  readonly level: number
  readonly emptyLinkType: number
}

/** A slab is one Buffer for all its life; the part is its first `length` bytes. */
export interface NativePart {
  readonly id: number
  readonly slab: Buffer
  readonly length: number
}

export interface NativeDownload {
  readonly linkType: number
  readonly snaplen: number
  next(): Promise<NativePart | undefined>
  release(id: number): void
  totals(): DownloadTotals
  close(): void
}

interface NativeImport {
  readonly finished: Promise<ImportResult>
  cancel(): void
}

/** The exports of native/binding/addon.cc. */
interface EngineBinding {
  initialize(makeError: (code: ErrorCode | 'cancelled', message: string) => Error): void
  openDownload(options: NativeOptions): Promise<NativeDownload>
  startImport(
    options: Required<Pick<ImportOptions, 'files' | 'directory'>> & { readonly segmentBytes: number },
    onProgress: (progress: ImportProgress) => void,
  ): NativeImport
}

function makeError(code: ErrorCode | 'cancelled', message: string): Error {
  if (code === 'cancelled') return new DOMException(message, 'AbortError')
  return new CapfleetError(code, message)
}

function loadEngine(): EngineBinding {
  const path = fileURLToPath(new URL('build/capfleet.node', import.meta.url))
  try {
    const loaded: EngineBinding = createRequire(import.meta.url)(path)
    loaded.initialize(makeError)
    return loaded
  } catch (cause) {
    throw new Error(`the engine ${path} does not load; build it with: node .ci/setup.mjs`, { cause })
  }
}

export const engine: EngineBinding = loadEngine()
