/** From the least to the most powerful: look, download, start/stop/delete. */
export const ROLES = ['viewer', 'user', 'full'] as const
export type Role = (typeof ROLES)[number]
