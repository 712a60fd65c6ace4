/** Why a connection by TLS has failed, where certificates are the reason. */

/** Of node:tls, when nobody whom we trust vouches for the other side. */
const DISTRUST = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/
/** The other side said so, by an alert. */
const REFUSAL = /^ERR_SSL_.*ALERT/

export interface CertificateTrouble {
  /** theirs: we do not trust it. ours: the other side does not, or misses one. */
  readonly whose: 'theirs' | 'ours'
  /** In the words of OpenSSL. */
  readonly reason: string
}

/** undefined: certificates have nothing to do with it. */
export function certificateTrouble(error: unknown): CertificateTrouble | undefined {
  if (!(error instanceof Error)) return undefined
  const { code, reason, message } = error as NodeJS.ErrnoException & { readonly reason?: string }
  if (typeof code !== 'string') return undefined
  if (REFUSAL.test(code)) return { whose: 'ours', reason: reason ?? message }
  return DISTRUST.test(code) ? { whose: 'theirs', reason: message } : undefined
}
