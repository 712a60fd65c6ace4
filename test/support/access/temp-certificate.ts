import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tempFolder } from '../temp-folder.ts'

export interface TempCertificate extends AsyncDisposable {
  /** Paths of PEM files. */
  readonly cert: string
  readonly key: string
  /** Content of `cert`; it is self-signed. */
  readonly ca: string
}

/** A self-signed certificate for localhost and 127.0.0.1. */
export async function createTempCertificate(): Promise<TempCertificate> {
  const folder = await tempFolder()
  const [cert, key] = [join(folder.path, 'cert.pem'), join(folder.path, 'key.pem')]
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const request = ['req', '-x509', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', names]
  const ecKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
  await promisify(execFile)('openssl', [...request, ...ecKey, '-keyout', key, '-out', cert])
  const ca = await readFile(cert, 'utf8')
  return { cert, key, ca, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}
