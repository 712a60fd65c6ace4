/** How long tests wait before they fail. No test may depend on how busy the machine is: these limits end only what never would. */

/** Limit of a test or hook that sets none itself: `--test-timeout` in .ci/run-tests.mjs is the same. */
export const TEST_LIMIT_MS = 1_200_000

/** Limit of the wait for one event: below that of its test, so that a failure names the event that did not come. */
export const WAIT_LIMIT_MS = 300_000
