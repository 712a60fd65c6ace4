/** Lists the users, for administrators. */
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import { answerPrivately } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { AccessParts } from './access-parts.ts'

export async function listUsers(ctx: RouteContext, { vouchers }: AccessParts): Promise<void> {
  takeNoParameters(ctx)
  answerPrivately(ctx, { users: vouchers.users.list() })
}
