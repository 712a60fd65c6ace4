/** The request for an export as the store keeps it, for tests that need no device. */
import type { ExportOrder } from '../../../src/gateway/export/export-order.ts'

export function storedOrder(told: Pick<ExportOrder, 'id' | 'target'> & Partial<ExportOrder>): ExportOrder {
  return {
    user: 'ann',
    createdMs: 1,
    plan: {
      kind: 'timerange',
      query: 'TSBegin=1&TSEnd=2&TSUnit=nanos',
      capturesMax: null,
      forcedFilters: [],
      devices: ['d0'],
    },
    align: false,
    partTimeNs: null,
    partBytes: null,
    onMissing: 'fail',
    reason: null,
    scheduleId: null,
    ...told,
  }
}
