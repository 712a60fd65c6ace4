// What test files need besides packages and the native build, according to their direct and indirect imports.
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ROOT } from './console.mjs'
import { importsOf } from './imports.mjs'

/** "python": the tools of .ci/python-lock.txt; "engine" and "threads": the engine's tests in their two builds. */
export const NEEDS = {
  'test/e2e/contract-properties.night.ts': ['python'],
  'test/e2e/packets/pcapng-readers.test.ts': ['python'],
  'test/images/dockerfile.test.ts': ['python'],
  'test/native/engine.test.ts': ['engine', 'threads'],
  'test/native/fuzz-corpus.test.ts': ['engine'],
  'test/spelling.test.ts': ['python'],
  'test/support/helm/chart.ts': ['python', 'chart'],
  'test/support/helm/promtool.ts': ['promtool'],
  'test/support/images/sbom.ts': ['python'],
  'test/support/packets/packet-sender.ts': ['engine'],
  'test/support/processes/temp-s3.ts': ['python', 's3'],
}

export const ALL_NEEDS = new Set(Object.values(NEEDS).flat())

/** Anything that is not a file, such as a pattern, needs everything. */
export function needsOf(files) {
  const paths = files.map((file) => relative(ROOT, resolve(ROOT, file)))
  if (!paths.every((path) => existsSync(join(ROOT, path)))) return ALL_NEEDS
  return new Set([...importsOf(paths).files].flatMap((path) => NEEDS[path] ?? []))
}
