/**
 * Advice for a filter that libpcap rejects with no more than "syntax error": what people type instead of tcpdump's
 * syntax, and the same filter in that syntax.
 */

/** Tokens of Wireshark's display filters, and of tcpdump; quotation marks are tokens. */
const TOKEN = /==|!=|&&|\|\||["'`‘’“”«»(){}!=,]|[^\s"'`‘’“”«»(){}!=,&|]+|[&|]/g
const QUOTATION_MARKS: ReadonlySet<string> = new Set('"\'`‘’“”«»')

/** Fields of display filters with the words that tcpdump has for them. */
const FIELDS: Readonly<Record<string, string>> = {
  'ip.addr': 'host',
  'ip.host': 'host',
  'ipv6.addr': 'host',
  'ip.src': 'src host',
  'ipv6.src': 'src host',
  'ip.dst': 'dst host',
  'ipv6.dst': 'dst host',
  'tcp.port': 'tcp port',
  'tcp.srcport': 'tcp src port',
  'tcp.dstport': 'tcp dst port',
  'udp.port': 'udp port',
  'udp.srcport': 'udp src port',
  'udp.dstport': 'udp dst port',
  'eth.addr': 'ether host',
  'eth.src': 'ether src',
  'eth.dst': 'ether dst',
  'vlan.id': 'vlan',
}

/** Words that are no filter of tcpdump alone. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  http: 'tcp port 80',
  https: 'tcp port 443',
  tls: 'tcp port 443',
  ssl: 'tcp port 443',
  ssh: 'tcp port 22',
  dns: 'port 53',
  ntp: 'udp port 123',
  ipv6: 'ip6',
  icmpv6: 'icmp6',
}

const OPERATORS: Readonly<Record<string, string>> = { '&&': 'and', '||': 'or', '!': 'not' }
const EQUALS: ReadonlySet<string> = new Set(['==', '=', 'eq'])
const DIFFERS: ReadonlySet<string> = new Set(['!=', 'ne'])
/** A name or number follows these words of tcpdump. */
const TAKES_VALUE: ReadonlySet<string> = new Set(['host', 'net', 'port', 'portrange', 'src', 'dst'])
const DISPLAY_FIELD = /^[a-z][a-z0-9_]*(\.[a-z_][a-z0-9_]*)+$/i
const VALUE = /^[\w.:/-]+$/
/** As other programs print the end of a connection. */
const ADDRESS_AND_PORT = /^(\d{1,3}(?:\.\d{1,3}){3}):(\d{1,5})$/
/** The direction in the words that an address may follow. */
const SIDE = /^(?:src|dst|)(?=(?: ?host)?$)/
const ETHERNET_ADDRESS = /^[\da-f]{2}([:-][\da-f]{2}){5}$/i
/** Operators that tcpdump has no words for. */
const WITHOUT_WORDS: ReadonlySet<string> = new Set(['contains', 'matches', '~'])
/** Longer filters come from programs. */
const CHARACTERS_MAX = 1_000

/** A sentence that begins after "; ", or undefined if the mistake is none of the usual ones. */
export function filterAdvice(expression: string): string | undefined {
  if (expression.length > CHARACTERS_MAX) return undefined
  const given = expression.match(TOKEN) ?? []
  const tokens = given.filter((token) => !QUOTATION_MARKS.has(token))
  const isDisplayFilter = tokens.some(isUnlikeHost)
  const meant = translated(tokens)
  const words = meant && spaced(meant)
  if (words !== undefined && words !== spaced(given))
    return isDisplayFilter
      ? `it is a display filter of Wireshark; in the syntax of tcpdump: ${words}`
      : `did you mean: ${words}`
  return isDisplayFilter
    ? 'it is a display filter of Wireshark, but the syntax must be that of tcpdump, such as: host 10.1.2.3 and tcp port 443'
    : undefined
}

function spaced(words: readonly string[]): string {
  return words.join(' ').replaceAll('( ', '(').replaceAll(' )', ')')
}

/** Names of hosts have dots too, but follow a word of tcpdump. */
function isUnlikeHost(token: string, index: number, tokens: readonly string[]): boolean {
  return DISPLAY_FIELD.test(token) && !TAKES_VALUE.has(tokens[index - 1] ?? '')
}

/** The words in tcpdump's syntax, or undefined if there is a field that tcpdump has no word for. */
function translated(tokens: readonly string[]): readonly string[] | undefined {
  const words: string[] = []
  for (let at = 0; at < tokens.length; ) {
    const token = tokens[at] ?? ''
    const previous = words.at(-1)?.split(' ').at(-1) ?? ''
    const field = FIELDS[token.toLowerCase()]
    if (field !== undefined || TAKES_VALUE.has(token)) {
      const term = termAt(tokens, at, field ?? token)
      if (term === undefined) return undefined
      words.push(...term.words)
      at = term.next
      continue
    }
    if (isUnlikeHost(token, at, tokens) || EQUALS.has(token) || DIFFERS.has(token)) return undefined
    if (WITHOUT_WORDS.has(token)) return undefined
    if (ADDRESS_AND_PORT.test(token)) {
      words.push(...anyOf('host', [token]))
      at += 1
      continue
    }
    if (token === ',' && isWord(tokens[at + 1])) {
      words.push('or')
      at += 1
      continue
    }
    words.push(OPERATORS[token] ?? (TAKES_VALUE.has(previous) ? token : (PROTOCOLS[token] ?? token)))
    at += 1
  }
  // What follows vlan looks deeper into the packet, so beside other terms it finds other packets than meant.
  return words.length > 1 && words.some((word) => word.startsWith('vlan ')) ? undefined : words
}

interface Term {
  readonly words: readonly string[]
  /** Index of the token after it. */
  readonly next: number
}

/** A word with its values: "port 80,443", "tcp.port in {80 443}", "ip.src != 10.0.0.1". */
function termAt(tokens: readonly string[], at: number, word: string): Term | undefined {
  const operator = tokens[at + 1] ?? ''
  if (operator === 'in' && tokens[at + 2] === '{') {
    const end = tokens.indexOf('}', at)
    const values = tokens.slice(at + 3, end).filter((token) => token !== ',')
    return end < 0 || !areValuesOf(word, values) ? undefined : { words: anyOf(word, values), next: end + 1 }
  }
  const isNot = DIFFERS.has(operator)
  let next = at + (isNot || EQUALS.has(operator) ? 2 : 1)
  // "src host": the values follow the last of such words.
  const following = tokens[next] ?? ''
  if (TAKES_VALUE.has(following)) return termAt(tokens, next, `${word} ${following}`)
  const values = [tokens[next] ?? '']
  next += 1
  while (tokens[next] === ',' && !isWord(tokens[next + 1])) {
    values.push(tokens[next + 1] ?? '')
    next += 2
  }
  if (!areValuesOf(word, values)) return undefined
  return { words: [...(isNot ? ['not'] : []), ...anyOf(word, values)], next }
}

/** Whether a term begins with it: "host 10.0.0.1, host 10.0.0.2". */
function isWord(token = ''): boolean {
  return TAKES_VALUE.has(token) || token.toLowerCase() in FIELDS
}

function areValuesOf(word: string, values: readonly string[]): boolean {
  const form = word.startsWith('ether ') ? ETHERNET_ADDRESS : VALUE
  return values.every((value) => form.test(value) && !value.includes('..'))
}

function anyOf(word: string, values: readonly string[]): readonly string[] {
  const terms = values.map((value) => {
    const [, address, port] = ADDRESS_AND_PORT.exec(value) ?? []
    const [side] = SIDE.exec(word) ?? []
    if (port !== undefined && side !== undefined) {
      const direction = side === '' ? '' : `${side} `
      return `(${direction}host ${address} and ${direction}port ${port})`
    }
    const isNetwork = value.includes('/') && word.endsWith('host') && word !== 'ether host'
    return `${isNetwork ? word.replace(/host$/, 'net') : word} ${value}`
  })
  return terms.length === 1
    ? terms
    : ['(', ...terms.flatMap((term, index) => (index === 0 ? [term] : ['or', term])), ')']
}
