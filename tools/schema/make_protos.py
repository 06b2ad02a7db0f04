#!/usr/bin/env python3
"""Writes schema/k8s/<group>_<version>.proto from the table of the upstream API's facts.

  tools/schema/make_protos.py TABLE OUTPUT_DIR core/v1:Pod,Service,... discovery/v1:EndpointSlice ... [--notes FILE]

For each package named, the messages reachable from its roots are written (messages of other packages that they need
must be reachable from the roots of those packages, or the compiler says what is missing). The output is the start
of a file that is then edited by hand: descriptions, defaults, allowed values and `support` are not facts of the table.
src/schema/schema_facts_test.cc compares the committed files with the table for ever.

A notes file brings such words along: lines "Message: description" and, indented, "field {option text}: description".
"Message {kind plural: ...}: description" makes the message a served kind.
"""

import argparse
import os
import re
import textwrap

import facts

TYPE_META = set('Status DeleteOptions Binding Scale PodTemplate'.split())
WIDTH = 108


def ReadNotes(path):
    """{(message, field or ''): (option text, description)}."""
    notes, message = {}, None
    if not path:
        return notes
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            found = re.match(r'( *)([^ :{]+)(?: \{(.*)\})?: ?(.*)$', line.rstrip())
            if not found or line.startswith('#'):
                continue
            indent, name, options, text = found.groups()
            if not indent:
                message = name
            notes[(message, name if indent else '')] = (options or '', text)
    return notes


class Writer:
    def __init__(self, messages, notes):
        self.messages = messages
        self.notes = notes
        self.resolver = facts.Resolver(messages)

    def Reachable(self, package, roots):
        found, waiting = set(), [(package, root) for root in roots]
        while waiting:
            key = waiting.pop()
            if key in found or key not in self.messages:
                continue
            found.add(key)
            for fact in self.messages[key]:
                target = self.resolver.Shape(package, fact.go_type)[1]
                if isinstance(target, tuple) and target[0] == package:
                    waiting.append(target)
        return [key for key in self.messages if key in found]

    def TypeName(self, package, target):
        if isinstance(target, tuple):
            home, name = target
            return name if home == package else facts.FILES[home][1] + '.' + name
        return target[len(facts.FILES[package][1]) + 1:] if target.startswith(
            facts.FILES[package][1] + '.') else target

    def Imports(self, package, keys):
        imports = {'schema/options.proto'}
        for key in keys:
            for fact in self.messages[key]:
                target = self.resolver.Shape(package, fact.go_type)[1]
                if isinstance(target, tuple):
                    imports.add('schema/k8s/%s.proto' % facts.FILES[target[0]][0])
                for path, name in facts.BY_HAND.values():
                    if name == target:
                        imports.add(path)
        imports.discard('schema/k8s/%s.proto' % facts.FILES[package][0])
        return sorted(imports)

    def Options(self, fact, shape):
        rules = []
        if fact.json == '(inline)':
            return ['inlined: true']
        if fact.omit != 'omitempty':
            optional = re.search(r'\+optional', fact.markers)
            rules.append('keep_empty: true' if optional else 'required: true')
        if 'merge' in fact.strategy.split(','):
            rules.append('merge: true')
        if fact.merge_key:
            rules.append('merge_key: "%s"' % fact.merge_key)
        if 'retainKeys' in fact.strategy.split(','):
            rules.append('retain_keys: true')
        for list_type in facts.Markers(fact, 'listType'):
            if shape == 'list' and list_type in ('set', 'map'):
                rules.append('list_type: ' + list_type.upper())
        rules += ['list_map_keys: "%s"' % key for key in facts.Markers(fact, 'listMapKey')]
        return rules

    def Field(self, package, fact):
        shape, target = self.resolver.Shape(package, fact.go_type)
        name = facts.InlineName(fact) if fact.json == '(inline)' else fact.json
        type_name = self.TypeName(package, target)
        if shape == 'list':
            type_name = 'repeated ' + type_name
        elif shape == 'map':
            type_name = 'map<string, %s>' % type_name
        elif fact.pointer or target == 'bytes':
            type_name = 'optional ' + type_name
        options, description = self.notes.get((fact.message, name), ('', ''))
        rules = self.Options(fact, shape) + ([options] if options else [])
        lines = ['  // ' + line for line in textwrap.wrap(description, WIDTH - 5)]
        text = '  %s %s = %s' % (type_name, name, fact.number)
        if rules:
            text += ' [(muster.field) = {%s}]' % ', '.join(rules)
        return '\n'.join(lines + Wrap(text + ';'))

    def Message(self, package, key):
        out = []
        name = key[1]
        options, description = self.notes.get((name, ''), ('', ''))
        out += ['// ' + line for line in textwrap.wrap(description, WIDTH - 3)]
        out.append('message %s {' % name)
        fields = self.messages[key]
        is_list = name.endswith('List') and any(f.json == 'items' for f in fields)
        if name in TYPE_META or is_list:
            out.append('  option (muster.message) = {type_meta: true};')
        if options.startswith('kind'):
            groups = re.split(r', (?=columns:)', options[len('kind '):])
            lines = [line for group in groups for line in WrapOptions(group, WIDTH - 4)]
            out += ['  option (muster.kind) = {'] + ['    ' + line for line in lines] + ['  };']
        if len(out) > 1 and out[-1].endswith('};'):
            out.append('')
        out += [self.Field(package, fact) for fact in sorted(fields, key=lambda f: int(f.number))]
        return '\n'.join(out + ['}'])

    def File(self, package, roots):
        base, proto_package, group, version = facts.FILES[package]
        keys = self.Reachable(package, roots)
        title = 'The %s API' % (group or 'core') if version else 'Metadata and options of all API objects'
        out = ['// %s, as upstream defines it (names, numbers and types are facts; the words are ours).' % title, '',
               'syntax = "proto3";', '', 'package %s;' % proto_package, '']
        out += ['import "%s";' % path for path in self.Imports(package, keys)] + ['']
        if version:
            out += ['option (muster.file) = {group: "%s", version: "%s"};' % (group, version), '']
        out.append('\n\n'.join(self.Message(package, key) for key in keys))
        return '\n'.join(out) + '\n'


def WrapOptions(text, width):
    """textwrap that leaves quoted strings whole."""
    held = re.sub(r'"[^"]*"', lambda found: found[0].replace(' ', '\0'), text)
    lines = textwrap.wrap(held, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace('\0', ' ') for line in lines]


def Wrap(text):
    if len(text) <= WIDTH or '{' not in text:
        return [text]
    head, _, rest = text.partition('{')
    body, _, tail = rest.rpartition('}')
    indent = ' ' * (len(head) - len(head.lstrip()))
    wrapped = WrapOptions(body, WIDTH - len(indent) - 2)
    return [head + '{'] + [indent + '  ' + line for line in wrapped] + [indent + '}' + tail]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('table')
    parser.add_argument('output')
    parser.add_argument('packages', nargs='+')
    parser.add_argument('--notes')
    arguments = parser.parse_args()
    writer = Writer(facts.ByMessage(facts.Rows(arguments.table)), ReadNotes(arguments.notes))
    for item in arguments.packages:
        package, _, roots = item.partition(':')
        path = os.path.join(arguments.output, facts.FILES[package][0] + '.proto')
        with open(path, 'w', encoding='utf-8') as out:
            out.write(writer.File(package, roots.split(',')))
        print(path)


if __name__ == '__main__':
    main()
