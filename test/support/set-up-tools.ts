/**
 * For the `skip` of a test that needs a tool which set-up brings: false where it is there, else the reason. In continuous
 * integration (CI=true) no such test is skipped: it fails.
 */
export function skipWithout(isThere: boolean, reason: string): string | false {
  return isThere || process.env.CI === 'true' ? false : reason
}
