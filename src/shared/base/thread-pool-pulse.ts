/**
 * Until version 2.41, glibc may lose the wake-up of a thread that waits on a condition variable (bug 25847; Debian 12 has 2.36).
 * The threads of Node's file operations wait so: an operation that met the fault would hang until another one comes, which in
 * a quiet program may be never. It was seen on busy machines, once in some thousand tests.
 */
import { stat } from 'node:fs'

const EVERY_MS = 1_000

/** Has one operation come every second, which wakes the threads, until dispose. Keeps no program alive. */
export function pulseThreadPool(): Disposable {
  const timer = setInterval(() => stat('/', () => undefined), EVERY_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
