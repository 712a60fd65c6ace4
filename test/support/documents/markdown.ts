/** What tests read of Markdown: headings with their anchors, links, and blocks of code. */

export interface CodeBlock {
  /** The word after the fence, such as "sh". */
  readonly kind: string
  readonly text: string
  /** The nearest heading before it. */
  readonly heading: string
}

const FENCE = /^ *```(\w*)\n([\s\S]*?)^ *```$/gm

/** Blocks of code are empty lines. */
export function withoutCode(text: string): string {
  return text.replaceAll(FENCE, '').replaceAll(/<!--[\s\S]*?-->/g, '')
}

export function headingsOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
}

/** As code hosts and the site make it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 _-]/g, '')
    .replaceAll(' ', '-')
}

/** The targets of links, without their titles. */
export function linksOf(text: string): string[] {
  const prose = withoutCode(text).replaceAll(/`[^`]*`/g, '')
  return [...prose.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target)
}

export function codeBlocksOf(text: string): CodeBlock[] {
  return [...text.matchAll(FENCE)].map(({ index, 1: kind = '', 2: code = '' }) => ({
    kind,
    text: code,
    heading: headingsOf(text.slice(0, index)).at(-1) ?? '',
  }))
}
