// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
/** The part of @goodtools/wiregasm that the frame uses. Its script defines the global function loadWiregasm. */

/** A list in the module's memory, which is freed by delete(). */
export interface Vector<T> {
  size(): number
  get(index: number): T
  delete(): void
}

export interface WiregasmField {
  readonly label: string
  readonly filter: string
  readonly start: number
  readonly length: number
  readonly data_source_idx: number
  readonly type: string
  readonly fnum?: number
  readonly tree: Vector<WiregasmField>
}

export interface WiregasmPacket {
  readonly data_sources: Vector<{ readonly name: string; readonly data: string }>
  readonly tree: Vector<WiregasmField>
  readonly follow: Vector<Vector<string>>
}

export interface WiregasmStream {
  readonly shost: string
  readonly sport: string
  readonly chost: string
  readonly cport: string
  readonly payloads: Vector<{ readonly number: number; readonly server: number; readonly data: string }>
}

export interface WiregasmSession {
  load(): {
    readonly code: number
    readonly error: string
    readonly summary: { readonly packet_count: number }
  }
  getFrames(
    filter: string,
    skip: number,
    limit: number,
  ): {
    readonly frames: Vector<{ readonly number: number; readonly columns: Vector<string> }>
    readonly matched: number
  }
  getFrame(number: number): WiregasmPacket
  follow(protocol: string, filter: string): WiregasmStream
  delete(): void
}

export interface Wiregasm {
  readonly FS: { writeFile(path: string, bytes: Uint8Array): void; unlink(path: string): void }
  readonly DissectSession: new (path: string) => WiregasmSession
  init(): boolean
  wiresharkVersion(): string
  getUploadDirectory(): string
  setPref(module: string, key: string, value: string): unknown
  applyPreferences(): void
  getColumns(): Vector<string>
  checkFilter(filter: string): { readonly ok: boolean; readonly error: string }
}

export interface WiregasmSettings {
  readonly wasmBinary: ArrayBuffer
  readonly getPreloadedPackage: () => ArrayBuffer
  readonly locateFile: (name: string) => string
  readonly print: (line: string) => void
  readonly printErr: (line: string) => void
  readonly handleStatus: (type: number, status: string) => void
}

export type LoadWiregasm = (settings: WiregasmSettings) => Promise<Wiregasm>

/** Takes the elements out of a list and frees it. */
export function taken<T, R>(vector: Vector<T>, make: (element: T) => R): R[] {
  const made = Array.from({ length: vector.size() }, (_, index) => make(vector.get(index)))
  vector.delete()
  return made
}
