/** Every comparison of the bench, in the order in which it runs and in which docs/reference/measured.md has it. */
import { compressions } from './compress.bench.ts'
import { controls } from './control.bench.ts'
import { firstBytes } from './first-byte.bench.ts'
import { imports } from './import.bench.ts'
import { merges } from './merge.bench.ts'
import { relays } from './relay.bench.ts'
import type { Row } from './row.ts'
import { storedDownloads } from './stored-download.bench.ts'

export const ROWS: readonly Row[] = [
  ...storedDownloads,
  ...firstBytes,
  ...compressions,
  ...imports,
  ...merges,
  ...relays,
  ...controls,
]
