/** Types of the file next to it. */
export function programFiles(): readonly string[]
export function expressionsIn(
  files: readonly string[],
  read?: (path: string) => string,
): {
  readonly literals: ReadonlyMap<string, readonly string[]>
  readonly composed: ReadonlyMap<string, readonly string[]>
}
export function growthOf(literal: string): Promise<string>
