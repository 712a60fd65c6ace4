/** The colours and fonts of the page, for drawing. */
const COLOURS = [
  'ground',
  'panel',
  'raised',
  'line',
  'text',
  'quiet',
  'accent',
  'good',
  'warning',
  'bad',
  'selection',
] as const

export type Look = Readonly<Record<(typeof COLOURS)[number] | 'font', string>>

export function readLook(element: Element): Look {
  const style = getComputedStyle(element)
  const token = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const colours = Object.fromEntries(COLOURS.map((name) => [name, token(name)]))
  return { ...colours, font: `${token('size-small')} ${token('mono')}` } as Look
}
