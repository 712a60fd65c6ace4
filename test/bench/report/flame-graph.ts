/**
 * Folded stacks as one SVG for a browser: the width of a box is its share of the samples, and the functions that it
 * called are above it.
 */
const WIDTH = 1_200
const ROW_HEIGHT = 17
const CHARACTER_WIDTH = 6.5
/** Narrower boxes are not visible. */
const LEAST_WIDTH = 0.3

interface Frame {
  readonly name: string
  samples: number
  readonly callees: Map<string, Frame>
}

/** `stacks`: functions starting with the outermost, separated by ";", and the samples (or instructions) of each. */
export function flameGraph(title: string, stacks: ReadonlyMap<string, number>): string {
  const root: Frame = { name: title, samples: 0, callees: new Map() }
  for (const [stack, samples] of stacks) addStack(root, stack.split(';'), samples)
  const height = ROW_HEIGHT * depthOf(root)
  const boxes: string[] = []
  const draw = (frame: Frame, x: number, level: number): void => {
    const width = (WIDTH * frame.samples) / root.samples
    if (width < LEAST_WIDTH) return
    boxes.push(box(frame, { x, y: height - ROW_HEIGHT * (level + 1), width }, root.samples))
    let left = x
    for (const callee of frame.callees.values()) {
      draw(callee, left, level + 1)
      left += (WIDTH * callee.samples) / root.samples
    }
  }
  if (root.samples > 0) draw(root, 0, 0)
  const size = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="monospace" font-size="11">\n${boxes.join('\n')}\n</svg>\n`
}

function addStack(root: Frame, names: readonly string[], samples: number): void {
  root.samples += samples
  let frame = root
  for (const name of names) {
    const callee = frame.callees.get(name) ?? { name, samples: 0, callees: new Map() }
    frame.callees.set(name, callee)
    callee.samples += samples
    frame = callee
  }
}

function depthOf({ callees }: Frame): number {
  return 1 + Math.max(0, ...[...callees.values()].map(depthOf))
}

function box({ name, samples }: Frame, at: { x: number; y: number; width: number }, all: number): string {
  const place = `x="${at.x.toFixed(1)}" y="${at.y}"`
  const hue = [...name].reduce((sum, character) => (sum * 31 + character.charCodeAt(0)) % 50, 0)
  const characters = Math.floor(at.width / CHARACTER_WIDTH)
  const shown = characters < 3 ? '' : name.slice(0, characters)
  const share = `${((100 * samples) / all).toFixed(1)} %`
  return (
    `<g><title>${escaped(name)}: ${samples}, ${share}</title>` +
    `<rect ${place} width="${at.width.toFixed(1)}" height="${ROW_HEIGHT - 1}" fill="hsl(${hue} 80% 65%)"/>` +
    `<text x="${(at.x + 2).toFixed(1)}" y="${at.y + 12}">${escaped(shown)}</text></g>`
  )
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
