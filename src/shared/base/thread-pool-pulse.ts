/**
 * Until version 2.41, glibc may lose the wake-up of a thread that waits on a condition variable (bug 25847; Debian 12
 * has 2.36). The threads of Node's file operations wait that way: an operation affected by the bug would hang until
 * another one is queued, which in a quiet program may be never. It was seen on busy machines, about once in a thousand
 * tests.
 */
import { stat } from 'node:fs'

const EVERY_MS = 1_000

/** Queues one operation every second, which wakes the threads, until disposed. Does not keep the process running. */
export function pulseThreadPool(): Disposable {
  const timer = setInterval(() => stat('/', () => undefined), EVERY_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
