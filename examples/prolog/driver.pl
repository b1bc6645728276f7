% SPDX-FileCopyrightText: The sandbox-workers authors
% SPDX-License-Identifier: Apache-2.0
% Runs one cell. The host writes it to /tmp/cell, this program writes the answer to /tmp/answer: a line with the current
% directory, a line with a word (value, none, error), and what belongs to that.
% A cell is Prolog text: clauses are added to the program, "?- Goal." and ":- Goal." are run once each. The value is
% what the last query found for its variables.

% The names in the environment that the last cell was given.
:- dynamic('$was_set'/1).

'$cell'(Env) :-
    '$set_env'(Env),
    catch(('$read_all'(Answer) -> true ; Answer = false), Problem, Answer = error(Problem)),
    open('/tmp/answer', write, Stream),
    '$write_cwd'(Stream),
    '$write_answer'(Stream, Answer),
    close(Stream).

'$write_cwd'(Stream) :-
    working_directory(Cwd, Cwd),
    atom_chars(Name, Cwd),
    write(Stream, Name),
    nl(Stream).

'$set_env'(Env) :-
    forall(retract('$was_set'(Name)), unsetenv(Name)),
    forall(member(Name = Value, Env), ( setenv(Name, Value), assertz('$was_set'(Name)) )).

'$read_all'(Answer) :-
    open('/tmp/cell', read, Stream),
    catch('$terms'(Stream, none, Answer), Problem, (close(Stream), throw(Problem))),
    close(Stream).

'$terms'(Stream, Before, Answer) :-
    read_term(Stream, Term, [variable_names(Names)]),
    (   Term == end_of_file
    ->  Answer = Before
    ;   '$term'(Term, Names, After),
        '$terms'(Stream, After, Answer)
    ).

'$term'((?- Goal), Names, Answer) :- !,
    ( call(user:Goal) -> Answer = value(Names) ; Answer = false ).
'$term'((:- Goal), _, none) :- !,
    ( call(user:Goal) -> true ; throw(error(directive_failed, Goal)) ).
'$term'(Term, _, none) :-
    ( expand_term(Term, Clause) -> true ; Clause = Term ),
    assertz(user:Clause).

'$write_answer'(Stream, none) :- write(Stream, 'none\n').
'$write_answer'(Stream, false) :- write(Stream, 'value\nfalse').
'$write_answer'(Stream, value(Names)) :-
    write(Stream, 'value\n'),
    '$bound'(Names, Bound),
    ( Bound == [] -> write(Stream, true) ; '$write_bindings'(Stream, Bound, Names) ).
'$write_answer'(Stream, error(Problem)) :-
    write(Stream, 'error\n'),
    '$kind'(Problem, Kind),
    write(Stream, Kind),
    nl(Stream),
    writeq(Stream, Problem).

'$bound'([], []).
'$bound'([Name = Value|Rest], Bound) :-
    '$bound'(Rest, More),
    ( var(Value) -> Bound = More ; Bound = [Name = Value|More] ).

'$write_bindings'(Stream, [Name = Value|Rest], Names) :-
    write(Stream, Name),
    write(Stream, ' = '),
    write_term(Stream, Value, [quoted(true), double_quotes(true), variable_names(Names)]),
    ( Rest == [] -> true ; write(Stream, ', '), '$write_bindings'(Stream, Rest, Names) ).

'$kind'(Problem, 'Error') :- var(Problem), !.
'$kind'(error(Formal, _), Kind) :- nonvar(Formal), !, functor(Formal, Kind, _).
'$kind'(_, 'Error').
