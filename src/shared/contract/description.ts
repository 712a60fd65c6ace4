/** /openapi.json and /openapi, generated from a table of routes. */
import { createHash } from 'node:crypto'
import type { ParameterizedContext } from 'koa'
import { z } from 'zod'
import type { RequestState } from '../http/http-app.ts'
import { DESCRIPTION_POLICY, descriptionPage } from './description-page.ts'
import type { Endpoint, Route } from './endpoint.ts'
import { openApi } from './openapi.ts'

type AnyContext = ParameterizedContext<RequestState>

const OPEN_API = z.looseObject({ openapi: z.string() }).meta({ id: 'OpenApi' })

const DESCRIPTIONS = {
  openApi: {
    method: 'GET',
    path: '/openapi.json',
    scope: 'device:read',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Operation',
    says: 'This description, for programs: OpenAPI 3.1.',
    answers: [
      {
        says: 'The description, with an ETag: a client that has it already gets a 304 without a body.',
        bodies: { 'application/json': OPEN_API },
      },
      { status: 304, says: 'Not changed: it is the one that If-None-Match names.', bodies: {} },
    ],
    errors: [],
  },
  page: {
    method: 'GET',
    path: '/openapi',
    scope: 'device:read',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Operation',
    says: 'This description, for people: one page, which loads nothing from other hosts.',
    answers: [
      { says: 'The page.', bodies: { 'text/html': 'text' } },
      { status: 304, says: 'Not changed: it is the one that If-None-Match names.', bodies: {} },
    ],
    errors: [],
  },
} as const satisfies Record<string, Endpoint>

/**
 * The table plus the routes that describe it, which are included in the description. `program` is its name for people.
 */
export function withDescription<Parts, Context extends AnyContext>(
  program: string,
  table: readonly Route<Parts, Context>[],
): readonly Route<Parts, Context>[] {
  const endpoints = [...table, ...Object.values(DESCRIPTIONS)]
  const document = new Page('application/json', () => openApi(program, endpoints))
  const page = new Page('text/html', () => descriptionPage(program, endpoints))
  return [
    ...table,
    { ...DESCRIPTIONS.openApi, handler: async (ctx) => document.answer(ctx) },
    {
      ...DESCRIPTIONS.page,
      handler: async (ctx) => {
        ctx.set('Content-Security-Policy', DESCRIPTION_POLICY)
        page.answer(ctx)
      },
    },
  ]
}

/** A text that does not change while the program runs; generated on first use. */
class Page {
  readonly #type: string
  readonly #make: () => string
  #made: { readonly bytes: Buffer; readonly etag: string } | undefined

  constructor(type: string, make: () => string) {
    this.#type = type
    this.#make = make
  }

  answer(ctx: AnyContext): void {
    this.#made ??= made(this.#make())
    const { bytes, etag } = this.#made
    ctx.set({ 'Cache-Control': 'private, no-cache', 'X-Content-Type-Options': 'nosniff' })
    ctx.status = 200
    ctx.etag = etag
    if (ctx.fresh) {
      ctx.status = 304
      return
    }
    ctx.type = this.#type
    ctx.body = bytes
  }
}

function made(text: string) {
  const bytes = Buffer.from(text)
  return { bytes, etag: createHash('sha256').update(bytes).digest('base64url') }
}
