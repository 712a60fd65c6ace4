/**
 * How long tests wait before they fail. No test may depend on how busy the machine is: these limits only end what
 * would never finish.
 */

/** Limit of a test or hook that sets none itself; same as `--test-timeout` in .ci/run-tests.mjs. */
export const TEST_LIMIT_MS = 1_200_000

/** Limit of the wait for one event: less than its test's, so that a failure names the missing event. */
export const WAIT_LIMIT_MS = 300_000
