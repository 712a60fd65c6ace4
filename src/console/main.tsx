/** The page: who is signed in, the navigation between its views, and the view that the address names. */
import { render } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { AccessPage } from './access/access-page.tsx'
import { useAction } from './base/asked.ts'
import { FleetEvents } from './base/heard-events.ts'
import { HELP_PAGES } from './base/help-pages.ts'
import { instantText, nowNs, zoneText } from './base/instants.ts'
import {
  formatPageState,
  type PageState,
  settleAddresses,
  usePageState,
  VIEWS,
  type View,
  withInstants,
} from './base/page-url.ts'
import { type Preferences, preferredZone, usePreferences } from './base/preferences.ts'
import { may, type Session, type SignedIn, useSession } from './base/session.ts'
import { withPivot } from './download/pivot-link.ts'
import { PivotPage } from './download/pivot-page.tsx'
import { FleetPage } from './fleet/fleet-page.tsx'
import { InsidePage } from './inside/inside-page.tsx'
import { EventsPage } from './jobs/events-page.tsx'
import { ExportsPage } from './jobs/exports-page.tsx'
import { QueuePage } from './jobs/queue-page.tsx'
import { SurroundingsContext } from './parts/context.ts'
import { Failure, Waiting } from './parts/notice.tsx'
import { SignIn } from './sign-in.tsx'
import { TEXTS } from './texts.ts'
import { TimelinePage } from './timeline/timeline-page.tsx'
import { TourPanel } from './tour/tour-panel.tsx'

/** The scope that a view needs; users without it do not see the view. */
const SCOPES: Readonly<Record<View, Session['scopes'][number] | undefined>> = {
  fleet: 'device:read',
  timeline: 'device:read',
  inside: 'capture:download',
  queue: 'queue:read',
  exports: 'export:read',
  events: 'device:read',
  access: undefined,
  pivot: undefined,
}

const PAGES: Readonly<Record<View, () => preact.JSX.Element>> = {
  fleet: FleetPage,
  timeline: TimelinePage,
  inside: InsidePage,
  queue: QueuePage,
  exports: ExportsPage,
  events: EventsPage,
  access: AccessPage,
  pivot: PivotPage,
}

function Page() {
  const signedIn = useSession()
  const preferences = usePreferences()
  const { session, failure, lookAgain, signIn } = signedIn
  if (session === undefined && failure !== undefined) return <Failure failure={failure} again={lookAgain} />
  if (session === undefined) return <Waiting text={TEXTS.signIn.looking} />
  if (session === null) return <SignIn signIn={signIn} />
  return <Frame session={session} signedIn={signedIn} preferences={preferences} />
}

interface FrameProps {
  readonly session: Session
  readonly signedIn: SignedIn
  readonly preferences: Preferences
}

function Frame({ session, signedIn, preferences }: FrameProps) {
  const state = usePageState()
  const views = VIEWS.filter((view) => isFor(session, view))
  const view = views.includes(state.view) ? state.view : 'access'
  // Of the session: the next one may see other devices.
  const isFiltered = session.bounds.filters.length > 0
  const events = useMemo(() => new FleetEvents({ isFiltered }), [isFiltered])
  const { zone, theme } = preferences
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = `${TEXTS.views[view]} · capfleet`
    // On a phone not all of them are visible.
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [view])
  const Shown = PAGES[view]
  return (
    <SurroundingsContext.Provider value={{ session, zone, theme, events }}>
      <button
        type="button"
        class="skip"
        onClick={() => document.querySelector<HTMLElement>('#content')?.focus()}
      >
        {TEXTS.skip}
      </button>
      <header class="top">
        <span class="brand">capfleet</span>
        <nav ref={nav} aria-label={TEXTS.way}>
          {views.filter(isInNavigation).map((name) => (
            <a key={name} href={linkTo(name, state)} aria-current={name === view ? 'page' : undefined}>
              {TEXTS.views[name]}
            </a>
          ))}
        </nav>
        <TopControls view={view} session={session} signedIn={signedIn} preferences={preferences} />
      </header>
      {session.demoTour && preferences.isTourOpen ? <TourPanel onClose={preferences.toggleTour} /> : null}
      <main id="content" tabIndex={-1} class={`view-${view}`}>
        <Shown />
      </main>
    </SurroundingsContext.Provider>
  )
}

function TopControls({ view, session, signedIn, preferences }: { readonly view: View } & FrameProps) {
  const { zone, toggleZone, theme, toggleTheme, isTourOpen, toggleTour } = preferences
  const now = nowNs()
  const leave = useAction()
  return (
    <div class="top-controls">
      {session.demoTour ? (
        <button type="button" aria-pressed={isTourOpen} onClick={toggleTour}>
          {TEXTS.tour.button}
        </button>
      ) : null}
      <a class="button" href={HELP_PAGES[view]} target="_blank" rel="noopener">
        {TEXTS.help}
      </a>
      <button type="button" title={`${TEXTS.toggleZone} (${instantText(now, zone, 0)})`} onClick={toggleZone}>
        {TEXTS.zone} {zoneText(zone, now)}
      </button>
      <button type="button" onClick={toggleTheme}>
        {theme === 'dark' ? TEXTS.toLight : TEXTS.toDark}
      </button>
      <button type="button" disabled={leave.isBusy} onClick={() => leave.run(signedIn.signOut)}>
        {TEXTS.signIn.out} <span class="quiet">{session.user}</span>
      </button>
      <Failure failure={leave.failure} />
    </div>
  )
}

function isInNavigation(view: View): boolean {
  return view !== 'pivot'
}

function isFor(session: Session, view: View): boolean {
  const scope = SCOPES[view]
  return (scope === undefined || may(session, scope)) && (view !== 'exports' || session.exports)
}

/** The selection is kept between the views that show it. */
function linkTo(view: View, { values }: PageState): string {
  return formatPageState({ view, values })
}

settleAddresses((state) => {
  const zone = preferredZone()
  return withInstants(withPivot(state, zone), zone)
})
const root = document.querySelector('#page')
if (root !== null) render(<Page />, root)
