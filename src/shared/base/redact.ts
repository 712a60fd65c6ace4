/**
 * Redacts secrets in log lines, as the last step before a line is written. Our own secrets are of type Secret, which
 * is never printed; this is for those from elsewhere, in a header, a query or the text of an error.
 */

const REDACTED = '[redacted]'

/** For lines of JSON: each pattern ends at the quote that ends a text. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // Members by name, whatever they contain.
  [
    /("(?:authorization|proxy-authorization|cookie|password|token|ticket|secret\w*)":)"(?:[^"\\]|\\.)*"/gi,
    `$1"${REDACTED}"`,
  ],
  // The value of an Authorization header inside a text.
  [/\b(Bearer|Basic) [\w.~+/-]{8,}=*/gi, `$1 ${REDACTED}`],
  // A parameter of a query.
  [/([?&;"\s](?:ticket|token|access_token|password|secret)=)[^&;\s"\\]+/gi, `$1${REDACTED}`],
  // User and password of a URL.
  [/(:\/\/)[^\s/@"\\]+@/g, `$1${REDACTED}@`],
  // A signed token (JWT), wherever it is.
  [/(?<![\w-])eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)*/g, REDACTED],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^"\\]|\\.)*/g, REDACTED],
]

/** The same for one text. */
export function redactedText(text: string): string {
  return JSON.parse(redacted(JSON.stringify(text))) as string
}

/** REQUIRES: complete lines of JSON. The result is lines of JSON again. */
export function redacted(lines: string): string {
  return PATTERNS.reduce((text, [pattern, shown]) => text.replace(pattern, shown), lines)
}
