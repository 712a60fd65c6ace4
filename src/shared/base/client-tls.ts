/** The certificates that a program presents and trusts as a TLS client, from PEM files. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readSecret } from './config-file.ts'
import { CapfleetError } from './error.ts'
import type { Secret } from './secret.ts'

/** Paths, relative to the configuration's folder. */
export interface ClientTlsFiles {
  /** Certificates of the only trusted authorities. Default: those of Node. */
  readonly ca?: string | undefined
  /** Our own certificate and its key, for servers that require one. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** The contents of the files. */
export interface ClientTls {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: Secret | undefined
}

/** `setting` is where the configuration names the files. Fails with bad-config. */
export async function readClientTls(
  files: ClientTlsFiles,
  configPath: string,
  setting: string,
): Promise<ClientTls> {
  const read = async (name: 'ca' | 'cert' | 'key') => {
    const file = files[name]
    return file === undefined ? undefined : await readSecret({ file }, configPath, `${setting}.${name}`)
  }
  const tls = {
    ca: (await read('ca'))?.reveal(),
    cert: (await read('cert'))?.reveal(),
    key: await read('key'),
  }
  try {
    refuseUnusable(tls)
  } catch (cause) {
    throw new CapfleetError('bad-config', `${setting}: cannot use ca, cert and key (${String(cause)})`, {
      cause,
    })
  }
  return tls
}

/** Node silently accepts a text without any certificate: as `ca` it would trust all authorities that Node knows. */
function refuseUnusable({ ca, cert, key }: ClientTls): void {
  if (ca !== undefined) new X509Certificate(ca)
  if (cert === undefined || key === undefined) return
  if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key.reveal()))) return
  throw new Error('the key does not belong to the certificate')
}
