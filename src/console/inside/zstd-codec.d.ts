/** zstd-codec has no types; these cover what the page uses. */
declare module 'zstd-codec/lib/zstd-codec-binding.js' {
  interface DecompressStream {
    begin(): boolean
    transform(piece: Uint8Array, onOutput: (output: Uint8Array) => void): boolean
    end(onOutput: (output: Uint8Array) => void): boolean
    delete(): void
  }
  interface Binding {
    onRuntimeInitialized: () => void
    ZstdDecompressStreamBinding: new () => DecompressStream
  }
  const start: (binding: Partial<Binding>) => Binding
  export = start
}
