/** What TypeScript cannot know of debian-archive.mjs. */
export function buildArchive(
  content: {
    readonly name: string
    readonly version: string
    readonly architecture: string
    readonly epochS: number
    readonly tree: string
    readonly isFast: boolean
  },
  file: string,
): void
