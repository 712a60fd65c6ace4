/**
 * What tells a whole body from one that merely ended: a device that announces no completion trailer
 * may end its answer in good form anywhere.
 */
export interface BodyGuard extends Disposable {
  /**
   * Whether the bytes so far, without those that feed() refused, may end between two elements of the
   * format, so that a cut there would not be seen in the file.
   */
  readonly mayBeWhole: boolean
  /** Whether feed() must be waited for. */
  readonly takesTime: boolean
  /** Looks at the next bytes, which must stay as they are meanwhile. Throws device-protocol. */
  feed(pieces: readonly Buffer[]): Promise<void> | undefined
  /** The body has ended here. Throws device-protocol when it is not a whole file. */
  finish(): Promise<void>
}
