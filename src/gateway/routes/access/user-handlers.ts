/** Who the users are, for those who look after them. */
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import type { GatewayParts } from '../gateway-parts.ts'
import { answerPrivately } from '../request/request-caller.ts'
import type { RouteContext } from '../route.ts'

export async function listUsers(ctx: RouteContext, { vouchers }: GatewayParts): Promise<void> {
  takeNoParameters(ctx)
  answerPrivately(ctx, { users: vouchers.users.list() })
}
