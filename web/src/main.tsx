import { render } from 'preact';

import { takeToken } from './api/session.ts';
import './style/base.css';
import './style/frame.css';
import './style/overview.css';
import './style/lists.css';
import './style/detail.css';
import './style/narrow.css';
import { App } from './view/app.tsx';

const app = document.getElementById('app');
if (app !== null) render(<App first={takeToken(window.location, window.history, sessionStorage)} />, app);
