// The nightly tests: those that take too long for each change, counted tests with higher counts, and Kubernetes. Ends
// with a table, and a non-zero status if any failed.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** How often the counted tests repeat their work; the long runs in ARCHITECTURE.md go further. */
const COUNTS = {
  ...{ STORE_FLIPS: 1000, STORE_CUTS: 200, STORE_TEARS: 200, RUNNING_FLIPS: 200, UPGRADE_KILLS: 20 },
  ...{ RECORDER_KILLS: 50, APPLIANCE_KILLS: 30, POWER_LOSSES: 20, AUDIT_KILLS: 40 },
  ...{ EXPORTS: 100, WORKER_KILLS: 60, REDIS_KILLS: 6, CHAOS_EVENTS: 1500 },
  ...{
    HOSTILE_DOWNLOADS: 1600,
    ABORTS: 2000,
    RESTARTS: 40,
    DOWNLOAD_CUTS: 6,
    CONTRACT_EXAMPLES: 50,
    FOREIGN_BREAKS: 200,
  },
  ...{ CAPFLEET_TURNS: 100, CAPFLEET_LONG: 1, CAPFLEET_HOSTILE_REQUESTS: 20_000 },
  ...{ FORCED_QUERIES: 600, AUDIT_QUERIES: 2000, MUTATED_TOKENS: 50_000, HIDDEN_DOWNLOADS: 1000 },
  ...{ LEASE_WALK_STEPS: 100_000, STORE_PAIRS: 100, CAPFLEET_REFERENCE_CASES: 1000 },
}
/** Files of `npm test` that use one of the counts. */
const COUNTED = [
  'test/appliance/compile/filter-compiler.test.ts',
  'test/appliance/downloads/download-slots.test.ts',
  'test/appliance/hostile-queries.test.ts',
  'test/appliance/recorder/writer/segment-log-writer.test.ts',
  'test/appliance/recorder/writer/upgrade.test.ts',
  'test/appliance/store/capture-catalogue.test.ts',
  'test/e2e/access/access-matrix.test.ts',
  'test/e2e/access/audit.test.ts',
  'test/e2e/access/forced-filter.test.ts',
  'test/e2e/access/hostile-queries.test.ts',
  'test/e2e/console-dissector.test.ts',
  'test/e2e/console.test.ts',
  'test/e2e/contract.test.ts',
  'test/e2e/exports/export-failures.test.ts',
  'test/e2e/exports/exports-pcapng.test.ts',
  'test/e2e/exports/wrong-worker-clock.test.ts',
  'test/e2e/failures/continued-downloads.test.ts',
  'test/e2e/failures/damaged-store.test.ts',
  'test/e2e/failures/device-restart.test.ts',
  'test/e2e/failures/full-disk.test.ts',
  'test/e2e/failures/full-store.test.ts',
  'test/e2e/failures/recorder-kills.test.ts',
  'test/e2e/failures/twice-damaged-store.test.ts',
  'test/e2e/failures/wrong-recorder-clock.test.ts',
  'test/e2e/hostile/slow-filters.test.ts',
  'test/e2e/packets/fleet-merge.test.ts',
  'test/e2e/packets/imported-pcapngs.test.ts',
  'test/e2e/packets/import-room.test.ts',
  'test/e2e/packets/pcapng-fleet.test.ts',
  'test/e2e/packets/reference-download.test.ts',
  'test/helm/chart.test.ts',
  'test/helm/rules.test.ts',
  'test/native/decapsulation.test.ts',
  'test/native/engine.test.ts',
  'test/src/demo/traffic/site-traffic.test.ts',
  'test/src/gateway/audit/verify-audit.test.ts',
  'test/src/gateway/auth/token-verifier.test.ts',
  'test/src/gateway/gateway-load.test.ts',
  'test/src/gateway/lease/lease-explorer.test.ts',
  'test/src/gateway/lease/lease-model.test.ts',
  'test/src/gateway/pcap/merge.test.ts',
  'test/src/gateway/routes/fleet/large-fleet.test.ts',
  'test/src/gateway/serve/download-audit.test.ts',
  'test/src/gateway/serve/resume-pcapng.test.ts',
  'test/src/start-and-end.test.ts',
]

const runs = [
  ['tests', [process.execPath, '.ci/run-tests.mjs', '--night', 'test/**/*.night.ts', ...COUNTED]],
  ['filters', ['npm', 'run', 'filters', '--', '200000']],
  ['Kubernetes', ['npm', 'run', 'test:kubernetes'], whyNoKubernetes()],
]

function whyNoKubernetes() {
  if (process.getuid() !== 0) return 'it needs root'
  return existsSync('.tools/kubelet') ? undefined : 'npm run test:kubernetes has never been run here'
}

const rows = runs.map(([name, [program, ...args], missing]) => {
  if (missing !== undefined) return `not run  ${name}: ${missing}`
  const startMs = Date.now()
  const { status } = spawnSync(program, args, { stdio: 'inherit', env: { ...COUNTS, ...process.env } })
  if (status !== 0) process.exitCode = 1
  return `${status === 0 ? 'passed ' : 'FAILED '}  ${name} (${Math.round((Date.now() - startMs) / 60_000)} min)`
})
process.stdout.write(`\nthe night:\n${rows.join('\n')}\n`)
