/** The bytes of a stream as they arrive. A chunk is valid until the next one is asked for. */
export interface ChunkStream extends AsyncIterator<Uint8Array> {
  /**
   * The next chunk when it is here already; undefined: ask next(). For many small chunks a promise each
   * costs more than their bytes. Fails as next() does; not while a next() is waited for.
   */
  take?(): Uint8Array | undefined
}
