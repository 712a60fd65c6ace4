/** Explains why a TLS connection failed, if the reason is a certificate. */

/** Error codes of node:tls for a peer certificate that is not trusted. */
const DISTRUST = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/
/** The peer reported it with an alert. */
const REFUSAL = /^ERR_SSL_.*ALERT/
/** Names a flag of Node.js, which users of our programs cannot set. */
const ADVICE_OF_NODE = '; if the root CA is installed locally'

export interface CertificateTrouble {
  /** theirs: we do not trust it. ours: the peer does not trust it, or requires one. */
  readonly whose: 'theirs' | 'ours'
  /** Error codes of OpenSSL. */
  readonly reason: string
}

/** Returns undefined if the error is not about certificates. */
export function certificateTrouble(error: unknown): CertificateTrouble | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, reason, message } = error as NodeJS.ErrnoException & { readonly reason?: string }
  if (typeof code !== 'string') return undefined
  if (REFUSAL.test(code)) return { whose: 'ours', reason: reason ?? message }
  if (!DISTRUST.test(code)) return undefined
  const [own = ''] = message.split(ADVICE_OF_NODE)
  return { whose: 'theirs', reason: own }
}
