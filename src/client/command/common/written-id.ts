/** Ids as users write them in arguments. */
import { listText } from '../../../shared/base/list-text.ts'
import { usageFailure } from '../../client-failure.ts'

/** An empty id is mostly an unset variable of a shell, and its path would be that of a list. Fails with a ClientFailure. */
export function writtenId(id: string, what: string, howToFindIt: string): string {
  if (id.trim() === '') throw usageFailure(`the id of the ${what} is empty; ${howToFindIt}`)
  return id
}

const BEGINNING = /^[0-9a-f-]{4,35}$/

/** Whether the text may be the beginning of the id of a request, and is not a whole one. */
export function isBeginning(id: string): boolean {
  return BEGINNING.test(id)
}

/**
 * The only one of the ids that begins like this; undefined if none does. Fails with a ClientFailure that names them if
 * several do. `whose` is what the ids are of, in the plural.
 */
export function idWithBeginning(beginning: string, ids: Iterable<string>, whose: string): string | undefined {
  const found = [...new Set(ids)].filter((id) => id.startsWith(beginning))
  if (found.length > 1)
    throw usageFailure(
      `${found.length} ${whose} begin with ${beginning}: ${listText(found)}; give more of the id`,
    )
  return found[0]
}
