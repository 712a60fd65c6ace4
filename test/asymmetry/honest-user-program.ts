/** The honest user in its own process. */
import { answerQuestions } from './helper-process.ts'
import { type HonestReport, HonestUser } from './honest-user.ts'
import type { Stand } from './stand.ts'

export type HonestOrder = { readonly kind: 'begin'; readonly stand: Stand } | { readonly kind: 'end' }

let user: HonestUser | undefined

answerQuestions<HonestOrder, HonestReport | undefined>({}, async (order) => {
  if (order.kind === 'begin') {
    user = HonestUser.begin(order.stand)
    return undefined
  }
  return await user?.end()
})
