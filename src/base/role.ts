/** From the least to the most powerful: look, download, start/stop/delete (api-decisions section 5). */
export const ROLES = ['viewer', 'user', 'full'] as const
export type Role = (typeof ROLES)[number]
