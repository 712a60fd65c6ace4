/**
 * The TLS configuration of a server, from files: its certificate and key, and the authorities for client certificates.
 */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { CapfleetError } from '../base/error.ts'

/** Paths of PEM files. */
export interface TlsFiles {
  /** The server's own certificate first, then the intermediate certificates up to one that clients trust. */
  readonly cert: string
  readonly key: string
  /** Authorities for client certificates: clients without one are rejected. Default: clients need none. */
  readonly clientCa?: string | undefined
}

export interface ServerCertificate {
  readonly context: SecureContextOptions
  /** When the server's own certificate expires, in seconds since 1970. */
  readonly endS: number
}

/** Fails with bad-config if the files cannot be used together. */
export async function readServerCertificate({ cert, key, clientCa }: TlsFiles): Promise<ServerCertificate> {
  try {
    const [chain, privateKey, ca] = await Promise.all([
      readFile(cert),
      readFile(key),
      clientCa === undefined ? undefined : readFile(clientCa),
    ])
    // A file without any certificate would be accepted silently, and then no client would be admitted.
    if (ca !== undefined) new X509Certificate(ca)
    const context = { cert: chain, key: privateKey, ca, minVersion: 'TLSv1.2' } as const
    // Fails if the key does not belong to the certificate.
    createSecureContext(context)
    return { context, endS: Date.parse(new X509Certificate(chain).validTo) / 1_000 }
  } catch (cause) {
    throw new CapfleetError('bad-config', `cannot use listen.tls (${String(cause)})`, { cause })
  }
}

/** All files that a server's certificate is read from. */
export function pathsOf({ cert, key, clientCa }: TlsFiles): readonly string[] {
  return clientCa === undefined ? [cert, key] : [cert, key, clientCa]
}
