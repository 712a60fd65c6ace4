/** A certificate authority and certificates that it issues. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type TempFolder, tempFolder } from '../temp-folder.ts'

const openssl = (args: readonly string[]) => promisify(execFile)('openssl', args)

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

export interface IssuedCertificate {
  /** Paths of PEM files. */
  readonly cert: string
  readonly key: string
}

export class TempAuthority implements AsyncDisposable {
  readonly #folder: TempFolder
  /** Path of the CA certificate. */
  readonly ca: string
  readonly #key: string

  private constructor(folder: TempFolder) {
    this.#folder = folder
    this.ca = join(folder.path, 'ca.pem')
    this.#key = join(folder.path, 'ca-key.pem')
  }

  static async create(): Promise<TempAuthority> {
    const authority = new TempAuthority(await tempFolder())
    const subject = ['-subj', '/CN=Authority', '-days', '2']
    await openssl(['req', '-x509', ...NEW_KEY, ...subject, '-keyout', authority.#key, '-out', authority.ca])
    return authority
  }

  /** For localhost and 127.0.0.1, and for clients. `name` determines the subject and the file names. */
  async issue(name: string, days = 1): Promise<IssuedCertificate> {
    const path = (what: string) => join(this.#folder.path, `${name}${what}.pem`)
    const [cert, key, request, extensions] = [path(''), path('-key'), path('-request'), path('-extensions')]
    await writeFile(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
    await openssl(['req', ...NEW_KEY, '-subj', `/CN=${name}`, '-keyout', key, '-out', request])
    const signed = ['-CA', this.ca, '-CAkey', this.#key, '-days', String(days), '-extfile', extensions]
    await openssl(['x509', '-req', '-in', request, ...signed, '-out', cert])
    return { cert, key }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]()
  }
}
