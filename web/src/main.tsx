import { render } from 'preact';

import { takeToken } from './api/session.ts';
import './style.css';
import { App } from './view/app.tsx';

const app = document.getElementById('app');
if (app !== null) render(<App first={takeToken(window.location, window.history, sessionStorage)} />, app);
