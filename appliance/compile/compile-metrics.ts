import type { Metrics } from '../../src/shared/base/metrics.ts'
import { COMPILE_RESULTS, type CompileQueue } from './compile-queue.ts'

/** Metrics of the outcomes of filter compilations, and of the current ones. */
export function registerCompileMetrics(metrics: Metrics, queue: CompileQueue): void {
  metrics.totals(
    'filter_compiles_total',
    'Compiles of FilterBPF and FilterRE by result',
    ['result'],
    (set) => {
      for (const result of COMPILE_RESULTS) set(queue.counts[result], { result })
    },
  )
  metrics.gauge('filter_compiles_running', 'Filters that are being compiled', [], (gauge) =>
    gauge.set(queue.running),
  )
  metrics.gauge('filter_compiles_waiting', 'Requests waiting for a filter compiler', [], (gauge) =>
    gauge.set(queue.waiting),
  )
}
