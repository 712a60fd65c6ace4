/** Preferences stored in this browser: theme, zone, whether the tour is shown. They are not part of a link. */
import { useEffect, useState } from 'preact/hooks'
import { browserZone, type Zone } from './instants.ts'

export type Theme = 'dark' | 'light'

export interface Preferences {
  readonly theme: Theme
  readonly zone: Zone
  readonly toggleTheme: () => void
  readonly toggleZone: () => void
  readonly isTourOpen: boolean
  readonly toggleTour: () => void
}

export function usePreferences(): Preferences {
  const [chosen, setChosen] = useState(chosenTheme)
  const [isUtc, setUtc] = useState(() => preferredZone() === 'UTC')
  const [isTourOpen, setTourOpen] = useState(() => kept('tour') !== 'closed')
  const systemTheme = useSystemTheme()
  const theme = chosen ?? systemTheme
  return {
    theme,
    zone: isUtc ? 'UTC' : browserZone(),
    toggleTheme: () => {
      const next = keep('theme', theme === 'dark' ? 'light' : 'dark')
      setChosen(next)
      // On page load, theme.js sets it.
      document.documentElement.dataset.theme = next
    },
    toggleZone: () => setUtc(keep('zone', isUtc ? 'local' : 'UTC') === 'UTC'),
    isTourOpen,
    toggleTour: () => setTourOpen(keep('tour', isTourOpen ? 'closed' : 'open') === 'open'),
  }
}

export function preferredZone(): Zone {
  return kept('zone') === 'local' ? browserZone() : 'UTC'
}

function chosenTheme(): Theme | undefined {
  const theme = kept('theme')
  return theme === 'dark' || theme === 'light' ? theme : undefined
}

function useSystemTheme(): Theme {
  const [query] = useState(() => matchMedia('(prefers-color-scheme: light)'))
  const [isLight, setLight] = useState(query.matches)
  useEffect(() => {
    const read = (): void => setLight(query.matches)
    query.addEventListener('change', read)
    return () => query.removeEventListener('change', read)
  }, [query])
  return isLight ? 'light' : 'dark'
}

/** Used if the browser does not allow storage: valid until the page is left. */
const unkept = new Map<string, string>()

function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(`capfleet-${name}`) ?? unkept.get(name)
  } catch {
    return unkept.get(name)
  }
}

function keep<Value extends string>(name: string, value: Value): Value {
  try {
    localStorage.setItem(`capfleet-${name}`, value)
  } catch {
    unkept.set(name, value)
  }
  return value
}
