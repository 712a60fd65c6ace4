import { writtenId } from '../common/written-id.ts'

/** The id of an export as a user writes it. Fails with a ClientFailure if it is empty. */
export function exportId(id: string): string {
  return writtenId(id, 'export', 'capfleet export list lists the ids')
}
