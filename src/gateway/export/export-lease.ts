/** Names of the leases under which workers read devices for an export: the queue shows them. */

/** `attempt` is unique for each attempt of a job. */
export function exportLeaseId(exportId: string, attempt: string): string {
  return `${PREFIX}${exportId}.${attempt}`
}

/** The id of the export, or undefined if the lease belongs to a download or a search. */
export function exportOfLease(leaseId: string): string | undefined {
  if (!leaseId.startsWith(PREFIX)) return undefined
  const [, exportId] = leaseId.split('.')
  return exportId
}

const PREFIX = 'export.'
