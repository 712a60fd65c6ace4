/** Text as Wireshark shows it: each byte that is neither printable ASCII nor white space is a dot. */
export function streamText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) =>
    (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d) ? String.fromCharCode(byte) : '.',
  ).join('')
}
