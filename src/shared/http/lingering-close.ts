/**
 * The end of a connection behind the last answer of a server that ends: our side ends alone, and what the client sends is
 * taken until it ends its own, as nginx does. Node would close at once, and a byte that comes after that, such as of
 * another request, makes the kernel throw away what the client has not read yet; nor could the connection be reset, which
 * is all that a client hears whose bytes are still here when the program's network goes. While a server serves, Node's
 * way stays: whoever closes a connection and opens another finds its place free.
 */
import type { Socket } from 'node:net'

/** Whoever leaves their side open and sends nothing has the connection for so long. */
const LINGER_MS = 30_000

/** Has the connection end like that. Node calls its destroySoon() behind the last answer, and nowhere else. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = endOurSide
}

/** A request that comes behind the last answer: what is behind it is not even read. */
export function isBehindTheLast(socket: Socket): boolean {
  if (!socket.writableEnded) return false
  socket.pause()
  return true
}

function endOurSide(this: Socket): void {
  if (this.writable) this.end()
  this.setTimeout(LINGER_MS)
}
