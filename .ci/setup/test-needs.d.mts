export const NEEDS: Readonly<Record<string, readonly string[]>>
export const ALL_NEEDS: ReadonlySet<string>
export function needsOf(files: readonly string[]): ReadonlySet<string>
